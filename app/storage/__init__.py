"""What the service keeps: one database (experiments, tasks, events), and folders of files beside it."""
