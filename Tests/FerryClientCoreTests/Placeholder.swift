private import Testing
