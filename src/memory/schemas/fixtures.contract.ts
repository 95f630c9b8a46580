import type { PolicyEntry } from './policy.ts';
import type { SessionState } from './session.ts';
import type { AuditEntry } from './audit.ts';

export const UUID = '0199a0b4-7c00-7000-8000-0000000000aa';

export function auditFixture(changes: Partial<AuditEntry> = {}): AuditEntry {
  return {
    requestId: UUID,
    sessionId: 'chat-1',
    timestampMs: Date.UTC(2026, 0, 1),
    model: 'stories15M',
    routing: {
      model: 'stories15M',
      contextSize: 512,
      temperature: 0.7,
      topP: 0.9,
      confidence: 0.8,
      modelProbs: [0.1, 0.9],
    },
    quality: 0.75,
    latency: {
      waitMs: 0.3,
      embeddingMs: 0.1,
      retrievalMs: 0.2,
      policyMs: 0.01,
      routingMs: 0.05,
      queueMs: 2,
      promptMs: 25,
      generationMs: 120,
      totalMs: 121,
      ttftMs: 30,
      writeMs: 0.4,
    },
    contextDocIds: [UUID],
    query: 'Where is my card?',
    response: 'On its way.',
    numCut: 0,
    numPromptTokens: 6,
    numOutputTokens: 4,
    queryEmbedding: Float32Array.of(0.6, 0.8),
    responseEmbedding: Float32Array.of(1, 0.1),
    space: 'test-2',
    error: null,
    repairs: [],
    ...changes,
  };
}

export function sessionFixture(changes: Partial<SessionState> = {}): SessionState {
  return {
    sessionId: 'chat-1',
    userId: 'ada',
    contextEmbedding: Float32Array.of(0.1, 0.2),
    space: 'test-2',
    activeAdapter: 'legal',
    turnCount: 3,
    createdMs: 4,
    lastActiveMs: 7,
    idleEndMs: 9,
    lastTurnId: UUID,
    metadata: { locale: 'de', tags: ['a', { deep: null }] },
    ...changes,
  };
}

export const ENVELOPE = {
  name: 'main',
  policyVersion: 2,
  confidence: 0.5,
  fisherDiagonal: null,
  embedding: Float32Array.of(1, 2),
  space: 'test-2',
  createdMs: 5,
  lastAccessedMs: 6,
  source: 'background-loop' as const,
  reason: 'loss fell',
};

export const POLICY_FIXTURES: readonly PolicyEntry[] = [
  {
    ...ENVELOPE,
    policyType: 'router',
    parameters: {
      version: 2,
      winner: 'ridge',
      candidates: ['small', 'large'],
      metrics: { held_out_mean: -0.25 },
      sampling: [
        { candidate: 'small', temperature: 0.2, topP: 0.9, quality: 0.9, otherQuality: 0.6, numSamples: 40 },
      ],
    },
  },
  {
    ...ENVELOPE,
    fisherDiagonal: Float32Array.of(0.001, 1e-6),
    policyType: 'ewc',
    parameters: {
      lambda: 2000,
      minLambda: 100,
      maxLambda: 15000,
      fisherDecay: 0.999,
      fisherFloor: 1e-6,
      minSamples: 100,
      maxTasks: 10,
    },
  },
];
