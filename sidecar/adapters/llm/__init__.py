"""Language models behind HTTP interfaces. Off unless a setting names one."""
