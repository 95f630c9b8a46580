import type { NewTrajectory } from './trajectories.ts';

/** A request of a test; `n` makes its id. */
export function trajectoryFixture(n: number, changes: Partial<NewTrajectory> = {}): NewTrajectory {
  return {
    requestId: `0199a0b4-7c00-7000-8000-${n.toString(16).padStart(12, '0')}`,
    sessionId: null,
    userId: null,
    model: 'small',
    createdMs: Date.UTC(2026, 0, 1) + n,
    query: 'Where is my card?',
    prompt: [{ role: 'user', content: 'Where is my card?' }],
    answer: 'On its way.',
    steps: ['route', 'generate'],
    parameters: { propensity: 0.5 },
    retrieved: [],
    quality: null,
    latencyMs: 12,
    numOutputTokens: 4,
    embedding: Float32Array.of(0.6, 0.8),
    space: 'test-2',
    ...changes,
  };
}
