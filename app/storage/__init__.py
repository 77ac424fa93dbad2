"""What the service keeps: one database with catalogue, ledger and events, and the folders with files beside it."""
