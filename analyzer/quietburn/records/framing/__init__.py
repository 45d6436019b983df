"""What stands around the records of a file: lines, the frames of runtimes and collectors, and documents."""
