"""The true results that devices are held against."""
