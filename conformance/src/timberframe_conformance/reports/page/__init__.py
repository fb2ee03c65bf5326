"""The files of which pages are made: HTML, CSS and plain JavaScript."""
