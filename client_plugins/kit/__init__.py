"""What every transcript plugin shares: tailing files, recognising recalls, naming projects, streaming evidence."""
