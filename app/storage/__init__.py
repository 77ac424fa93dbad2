"""What the service keeps: one database with experiment_table, task_table and events, and the folders with files beside
it."""
