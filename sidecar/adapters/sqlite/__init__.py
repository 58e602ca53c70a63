"""The memory store on SQLite, through apsw, which brings a current SQLite of its own."""
