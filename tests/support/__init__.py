"""What several tests share: random trees and oracles that were not written with the engine."""
