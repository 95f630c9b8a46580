import { describe, expect, test } from 'vitest';
import { auditInput } from '../audit/harness.contract.ts';
import { createTestMemory, type TestMemory } from './harness.contract.ts';

const idOf = (value: unknown): string => (value as { id: string }).id;
const uuidOf = (n: number): string => `0199a0b4-7c00-7000-8000-${n.toString(16).padStart(12, '0')}`;

describe('[OP14] memory.list', () => {
  test('goes through kinds page by page, with the beginning of each text', async () => {
    const { run } = await createTestMemory();
    for (let i = 0; i < 5; i++) await run('memory.add', { text: `document ${i}` });
    const fact = idOf(await run('memory.add', { text: 'x'.repeat(600), kind: 'fact', topic: 'long' }));
    interface Page {
      readonly records: readonly { id: string; text: string; kind: string; isCut: boolean }[];
      readonly next: string | null;
    }
    const texts: string[] = [];
    let after: string | undefined;
    do {
      const page = (await run('memory.list', { kinds: ['document'], order: 'oldest', limit: 2, ...(after && { after }) })) as Page; // prettier-ignore
      expect(page.records.length).toBeLessThanOrEqual(2);
      texts.push(...page.records.map(({ text }) => text));
      after = page.next ?? undefined;
    } while (after !== undefined);
    expect(texts).toEqual([0, 1, 2, 3, 4].map((i) => `document ${i}`));
    const facts = (await run('memory.list', { kinds: ['fact'] })) as Page;
    expect(facts.records).toMatchObject([{ id: fact, kind: 'fact', text: 'x'.repeat(512), isCut: true }]);
    expect(await run('memory.list', {}, 'other')).toEqual({ records: [], next: null });
    await expect(run('memory.list', { kinds: ['state'] })).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(run('memory.list', { limit: 1001 })).rejects.toMatchObject({ code: 'invalid_option' });
  });

  test('does not list expired records', async () => {
    const { run, services } = await createTestMemory();
    await run('memory.add', { text: 'soon gone', expiresMs: services.timeMs + 10 });
    expect(await run('memory.list')).toMatchObject({ records: [{ text: 'soon gone' }] });
    services.timeMs += 20;
    expect(await run('memory.list')).toMatchObject({ records: [] });
  });
});

describe('[GR3] memory.graph', () => {
  async function plant(desk: TestMemory, numLeaves: number) {
    const { run, memory } = desk;
    const add = async (text: string): Promise<string> => idOf(await run('memory.add', { text }));
    const [start, middle] = [await add('start'), await add('middle')];
    const link = (from: string, to: string, weight: number) =>
      memory.graph.link('acme', [{ from, to, relation: 'cites', weight, confidence: 1 }]);
    await link(start, middle, 1);
    const leaves: string[] = [];
    for (let i = 0; i < numLeaves; i++) {
      const leaf = await add(`leaf ${i}`);
      await link(middle, leaf, 0.9 - i / 100);
      leaves.push(leaf);
    }
    return { start, middle, leaves };
  }
  interface Graph {
    readonly nodes: readonly { id: string; hops: number; text: string }[];
    readonly edges: readonly { from: string; to: string; relation: string }[];
    readonly isComplete: boolean;
  }

  test('has the nodes with their distance, and the edges between them', async () => {
    const desk = await createTestMemory();
    const { start, middle, leaves } = await plant(desk, 3);
    const one = (await desk.run('memory.graph', { id: start, hops: 1 })) as Graph;
    expect(one.nodes.map(({ id, hops }) => [id, hops])).toEqual([[start, 0], [middle, 1]]); // prettier-ignore
    expect(one.edges).toMatchObject([{ from: start, to: middle, relation: 'cites' }]);
    const two = (await desk.run('memory.graph', { id: start })) as Graph;
    expect(two.nodes.map(({ text }) => text)).toEqual(['start', 'middle', 'leaf 0', 'leaf 1', 'leaf 2']);
    expect(two.edges).toHaveLength(4);
    expect(two.isComplete).toBe(true);
    // Against the direction of the edges, too.
    const back = (await desk.run('memory.graph', { id: leaves[0]!, hops: 1 })) as Graph;
    expect(back.nodes.map(({ id }) => id)).toEqual([leaves[0], middle]);
  });

  test('is bounded, and says so; of another tenant there is nothing', async () => {
    const desk = await createTestMemory();
    const { start } = await plant(desk, 8);
    const few = (await desk.run('memory.graph', { id: start, maxNodes: 4 })) as Graph;
    expect(few.nodes.map(({ text }) => text)).toEqual(['start', 'middle', 'leaf 0', 'leaf 1']);
    expect(few.isComplete).toBe(false);
    for (const { from, to } of few.edges) {
      expect(few.nodes.some(({ id }) => id === from) && few.nodes.some(({ id }) => id === to)).toBe(true);
    }
    const thin = (await desk.run('memory.graph', { id: start, maxEdges: 2 })) as Graph;
    expect(thin.edges.length).toBeLessThanOrEqual(2);
    expect(thin.isComplete).toBe(false);
    expect(await desk.run('memory.graph', { id: start, maxNodes: 10 })).toMatchObject({ isComplete: true });
    await expect(desk.run('memory.graph', { id: start }, 'other')).rejects.toMatchObject({ code: 'not_found' });
    await expect(desk.run('memory.graph', { id: start, maxNodes: 501 })).rejects.toMatchObject({ code: 'invalid_option' }); // prettier-ignore
  });
});

describe('[OP15] one request', () => {
  const latency = {
    embeddingMs: 2,
    retrievalMs: 7,
    routingMs: 1,
    generationMs: 80,
    totalMs: 100,
    ttftMs: 40,
  };

  test('shows the spans of its time and its sources, and no judgement without feedback', async () => {
    const { run, audit } = await createTestMemory();
    const source = idOf(await run('memory.add', { text: 'cards are blue' }));
    await audit([{ requestId: uuidOf(1), query: 'lost card', latency, contextDocIds: [source, uuidOf(9)] }]);
    expect(await run('audit.show', { requestId: uuidOf(1) })).toMatchObject({
      entry: { entry: { requestId: uuidOf(1), query: 'lost card', latency } },
      spans: [
        { name: 'embedding', startMs: 0, durationMs: 2 },
        { name: 'retrieval', startMs: 2, durationMs: 7 },
        { name: 'routing', startMs: 9, durationMs: 1 },
        { name: 'other', startMs: 10, durationMs: 10 },
        { name: 'firstToken', startMs: 20, durationMs: 20 },
        { name: 'tokens', startMs: 40, durationMs: 60 },
      ],
      sources: [{ id: source, kind: 'document', text: 'cards are blue' }],
      judged: null,
    });
    await expect(run('audit.show', { requestId: uuidOf(2) })).rejects.toMatchObject({ code: 'not_found' });
    await expect(run('audit.show', { requestId: uuidOf(1) }, 'other')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('without a first token the time is not split, and always adds up', async () => {
    const { run, audit } = await createTestMemory();
    await audit([{ requestId: uuidOf(1), latency: { ...latency, ttftMs: null, embeddingMs: 0 } }]);
    const { spans } = (await run('audit.show', { requestId: uuidOf(1) })) as {
      spans: { name: string; startMs: number; durationMs: number }[];
    };
    expect(spans.at(-1)).toEqual({ name: 'generation', startMs: 20, durationMs: 80 });
    expect(spans.reduce((sum, { durationMs }) => sum + durationMs, 0)).toBe(100);
  });

  test('every part there is has its place: the queue and the prompt before the first token, the writing after the end', async () => {
    const { run, audit } = await createTestMemory();
    const parts = { waitMs: 5, policyMs: 1, queueMs: 6, promptMs: 10, writeMs: 2, totalMs: 96 };
    await audit([{ requestId: uuidOf(1), latency: { ...latency, ...parts } }]);
    expect(await run('audit.show', { requestId: uuidOf(1) })).toMatchObject({
      spans: [
        { name: 'wait', startMs: 0, durationMs: 5 },
        { name: 'embedding', startMs: 5, durationMs: 2 },
        { name: 'retrieval', startMs: 7, durationMs: 7 },
        { name: 'policy', startMs: 14, durationMs: 1 },
        { name: 'routing', startMs: 15, durationMs: 1 },
        { name: 'queue', startMs: 16, durationMs: 6 },
        { name: 'prompt', startMs: 22, durationMs: 10 },
        { name: 'firstToken', startMs: 32, durationMs: 8 },
        { name: 'tokens', startMs: 40, durationMs: 56 },
        { name: 'write', startMs: 96, durationMs: 2 },
      ],
    });
  });

  test('has others like it, the nearest first, and never itself', async () => {
    const { run, audit, memory } = await createTestMemory();
    const queries = ['lost card', 'my lost card', 'spring weather'];
    const entries = await Promise.all(
      queries.map(async (query, i) => {
        const { vector, space } = (await memory.embed(query))!;
        return { requestId: uuidOf(i + 1), query, queryEmbedding: vector, space };
      }),
    );
    await audit(entries);
    const { entries: near } = (await run('audit.similar', { requestId: uuidOf(1) })) as {
      entries: { similarity: number; entry: { query: string } }[];
    };
    expect(near[0]!.entry.query).toBe('my lost card');
    expect(near.every(({ entry }) => entry.query !== 'lost card')).toBe(true);
    const some = (await run('audit.similar', { requestId: uuidOf(1), minSimilarity: 0.5 })) as { entries: unknown[] };
    expect(some.entries).toHaveLength(1);
    const blind = await createTestMemory(null);
    blind.memory.audit.enqueue(
      'acme',
      auditInput({ requestId: uuidOf(7), queryEmbedding: null, responseEmbedding: null, space: null }),
    );
    await blind.memory.audit.flush();
    await expect(blind.run('audit.similar', { requestId: uuidOf(7) })).rejects.toMatchObject({
      code: 'invalid_option',
    });
  });
});

test('[OP16] decisions are the requests that a router chose for, page by page over all others', async () => {
  const { run, audit } = await createTestMemory();
  const routing = {
    model: 'small',
    contextSize: 512,
    temperature: 0.7,
    topP: 0.9,
    confidence: 0.8,
    modelProbs: [0.8, 0.2],
  };
  await audit(Array.from({ length: 12 }, (_, i) => ({ requestId: uuidOf(i + 1), query: `query ${i}`, routing: i % 3 === 0 ? routing : null }))); // prettier-ignore
  interface Page {
    readonly decisions: readonly { query: string; routing: { confidence: number }; candidate: null }[];
    readonly next: string | null;
    readonly isComplete: boolean;
  }
  const first = (await run('audit.decisions', { limit: 3 })) as Page;
  expect(first.decisions.map(({ query }) => query)).toEqual(['query 9', 'query 6', 'query 3']);
  expect(first.decisions[0]).toMatchObject({ routing, candidate: null, hasError: false });
  const rest = (await run('audit.decisions', { limit: 3, after: first.next })) as Page;
  expect(rest.decisions.map(({ query }) => query)).toEqual(['query 0']);
  expect(rest).toMatchObject({ next: null, isComplete: true });
  const few = (await run('audit.decisions', { limit: 3, maxScanned: 4 })) as Page;
  expect([few.decisions.length, few.isComplete, few.next === null]).toEqual([1, false, false]);
});
