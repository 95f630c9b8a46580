import { z } from 'zod';
import { ADAPTER_PREFIX, adapterLine, ewcSummary } from '../../../learning/sona/learned-adapter.ts';
import { VERDICTS } from '../../../memory/schemas/trajectory.ts';
import { refuseInput } from '../../../memory/operations/index.ts';
import { text } from '../../../memory/schemas/primitives.ts';
import type { LearningControl } from './control.ts';
import { defineLearning, type LearningOperation, plainVersion } from './define.ts';

async function describeModel({ learning }: LearningControl, tenant: string, model: string): Promise<object> {
  const { sona } = learning;
  const line = adapterLine(model);
  const [active, [newest]] = [await sona.versions.active(tenant, line), await sona.versions.history(tenant, line, 1)];
  return {
    model,
    isLoaded: learning.models().includes(model),
    /** Null: the model of the file. */
    serves: active === null ? null : plainVersion(active),
    /** Finished tasks that the next run is held to, how strongly, and when each new task began. */
    ewc: active === null ? null : ewcSummary(active),
    /** Instant steps on top of the active version. */
    numSingleAnswers: (await sona.taught(tenant, model)).length,
    newestVersion: newest?.version ?? 0,
    /** Null: none since the start. */
    lastRun: sona.lastRun(tenant, model),
    isBackgroundDue: await sona.shouldTriggerBackground(tenant, model),
    isDeepDue: await sona.shouldTriggerDeep(tenant, model),
  };
}

const MAX_OUTCOMES = 20;

const status = defineLearning({
  name: 'learn.status',
  summary: 'Stored requests, learned versions, active versions, and due or running loops.',
  input: z.strictObject({}),
  async run(control, tenant) {
    const { learning, memory } = control;
    const numRequests: Record<string, number> = {};
    for (const verdict of VERDICTS) {
      const fields = [{ field: 'verdict', is: '=', value: verdict }] as const;
      numRequests[verdict] = await memory.store.count(tenant, { kinds: ['trajectory'], filter: { fields } });
    }
    const lines = await learning.sona.versions.lines(tenant);
    const learned = lines.filter((line) => line.startsWith(ADAPTER_PREFIX)).map((line) => line.slice(ADAPTER_PREFIX.length)); // prettier-ignore
    const models: object[] = [];
    const taught = await learning.sona.taughtModels(tenant);
    for (const model of new Set([...control.models(), ...learned, ...taught])) {
      models.push(await describeModel(control, tenant, model));
    }
    const others: object[] = [];
    for (const line of lines.filter((one) => !one.startsWith(ADAPTER_PREFIX))) {
      const [active, [newest]] = [await learning.sona.versions.active(tenant, line), await learning.sona.versions.history(tenant, line, 1)]; // prettier-ignore
      others.push({ line, serves: active === null ? null : plainVersion(active), newestVersion: newest?.version ?? 0 });
    }
    const isRated = [{ field: 'verdict', is: '!=', value: 'unknown' }] as const;
    const rated = await learning.trajectories.find(tenant, { conditions: isRated, limit: MAX_OUTCOMES });
    const outcomes = rated.flatMap(({ requestId, outcome }) =>
      outcome === undefined ? [] : [{ requestId, ...outcome }],
    );
    return {
      tenant,
      numRequests,
      /** Corrections that are recalled. */
      numCorrections: await learning.corrections.count(tenant),
      /** Of the newest rated requests. */
      outcomes: outcomes.map(({ requestId, state, reason }) => ({ requestId, state, reason })),
      numPatterns: await learning.sona.bank.count(tenant),
      models,
      /** Re-ranking and routing. */
      others,
      runs: control.runs.list(tenant),
    };
  },
});

const health = defineLearning({
  name: 'learn.health',
  summary: 'Steps, runs and versions of all tenants together since the start.',
  input: z.strictObject({}),
  run: async ({ learning }) => ({ ...learning.sona.stats() }),
});

const patterns = defineLearning({
  name: 'learn.patterns',
  summary: 'Patterns of rated requests, found by meaning, also those of trusted nodes with their source.',
  input: z.strictObject({ text: text(1 << 16, 1), k: z.int().min(1).max(100).default(10) }),
  async run({ learning, memory, federation }, tenant, { text: words, k }) {
    const embedded = await memory.embedRequest(words);
    if (embedded === null) throw refuseInput('this text cannot be embedded', 'text');
    const shared = (await federation?.patternsNear(tenant, embedded, k)) ?? null;
    if (shared !== null) return { patterns: shared };
    const found = await learning.sona.bank.search(tenant, { ...embedded, k });
    return {
      patterns: found.map(({ pattern, similarity, weight }) => ({ ...pattern, similarity, weight })),
    };
  },
});

export const statusOperations: readonly LearningOperation[] = [status, health, patterns];
