"""`sidecar demo`: the main job on a recorded real session, in a data folder of its own."""
