"""How the local judge reads a transcript: pure rules, from a case to figures and from figures to a verdict."""
