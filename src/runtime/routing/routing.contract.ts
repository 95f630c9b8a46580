import { createRouter, fitFamiliarity, fitRouteEncoder, saveRouter } from '../../learning/router/index.ts';
import { createConstant } from '../../learning/router/baselines/constant.ts';
import { sumsAndLetters } from '../../learning/router/test-examples.contract.ts';
import { putRouterText, ROUTER_LINE, routerPointer } from '../../learning/router-training/router-line.ts';
import { createFloatBlobs } from '../../learning/versions/blobs.ts';
import { createVersionLog } from '../../learning/versions/version-log.ts';
import type { EmbeddedText, Memory } from '../../memory/memory.ts';
import { readRouteConfig, type RouteConfig } from './route-config.ts';

/** Two local models and an engine elsewhere; the small one is safe. */
export const CONFIG = {
  candidates: [
    { kind: 'local', id: 'small', model: 'small' },
    { kind: 'local', id: 'large', model: 'large' },
    {
      kind: 'remote',
      id: 'far',
      url: 'http://127.0.0.1:9/v1',
      apiKeyEnv: 'FAR_KEY',
      model: 'far-1',
      pricePerMTokens: { input: 1, output: 3 },
      timeoutMs: 60_000,
    },
  ],
  default: 'small',
  // On a busy machine a vector takes longer than the default, and the router would fall back.
  encoderTimeoutMs: 10_000,
};
export const FAR_KEY = 'sk-very-secret-0123456789';

export const configOf = (changes: object = {}): RouteConfig =>
  readRouteConfig({ ...CONFIG, ...changes }, { FAR_KEY, OTHER_KEY: 'sk-other' });

/** Lets a router serve for a tenant that always says the same candidate, with this confidence; with `rated`, it reads sentence vectors. */
export async function serveConstant(
  memory: Memory,
  tenant: string,
  config: RouteConfig,
  {
    candidate,
    confidence,
    kind,
    rated,
  }: { candidate: number; confidence: number; kind?: string; rated?: EmbeddedText[] },
): Promise<number> {
  const { store, services } = memory;
  const requests = sumsAndLetters(20, 1).map(({ text, group }, i) => ({ turns: [text], group, vector: rated?.[i % rated.length]!.vector })); // prettier-ignore
  const [first] = rated ?? [];
  const encoder = fitRouteEncoder(requests, { numBuckets: 256, vector: first?.vector.length ?? 0 }, first?.space);
  const examples = requests.map((request) => ({
    ...request,
    input: encoder.encode(request),
    outcomes: new Float32Array(3),
  }));
  const rule = {
    candidates: config.priced,
    weights: config.weights,
    shrinkage: null,
    platt: { slope: 0, intercept: Math.log(confidence / (1 - confidence)) },
    safeDefault: config.safeDefault,
    minConfidence: config.minConfidence,
    familiarity: fitFamiliarity(examples, 1),
  };
  const name = `always ${config.candidates[candidate]!.id}`;
  const constant = createConstant(name, candidate, config.candidates.length);
  const estimator = kind === undefined ? constant : { ...constant, save: () => ({ ...constant.save(), kind }) };
  const text = saveRouter(createRouter(encoder, estimator, rule), services.sha256);
  const { version } = await createVersionLog(
    store,
    services,
    routerPointer(() => memory.policies),
  ).add(tenant, {
    line: ROUTER_LINE,
    loop: 'operator',
    isAccepted: true,
    reason: 'a test',
    metrics: {},
    blobs: await putRouterText(createFloatBlobs(store, services), tenant, text),
    contents: { kind: 'router', winner: name, candidates: config.candidates.map(({ id }) => id), contests: [], sampling: [] }, // prettier-ignore
    learnedFrom: [],
  });
  return version;
}
