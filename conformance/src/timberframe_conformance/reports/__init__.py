"""What a run shows: on the terminal, as JSON, JUnit and HTML, and as the difference of two runs."""
