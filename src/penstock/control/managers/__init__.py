"""E2DF's two control systems of two levels each: operators and application, regions and infrastructure."""
