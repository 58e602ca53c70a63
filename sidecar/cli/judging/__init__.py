"""`sidecar judge-eval`: how well a judge agrees with labelled transcripts."""
