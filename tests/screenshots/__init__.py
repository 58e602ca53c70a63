"""Takes the pictures of the dashboard in docs/pictures: every registered page, light, dark and as a phone shows it."""
