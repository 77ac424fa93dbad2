"""What an experiment is: its spec and recipes, the plan, the tasks, what they return, and what it costs."""
