"""What a device is tried with: arrays, layouts, dtypes and the ids of cases."""
