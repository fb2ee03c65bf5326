"""Pages and drawings that need nothing else: loaded when something is to be shown, never by a run."""
