"""A plan is a schedule within a budget: what the budget means, the least that is known, and the two passes that follow."""
