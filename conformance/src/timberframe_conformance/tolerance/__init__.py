"""How far a result may be from the truth: derived from the op's declaration, never guessed."""
