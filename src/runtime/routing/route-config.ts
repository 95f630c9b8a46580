import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { type Candidate, MIN_CONFIDENCE } from '../../learning/router/index.ts';
import { name, parseWith } from '../../memory/schemas/primitives.ts';

/** Assumed time to first token until it is measured. */
const EXPECTED_MS = { low: 200, medium: 1000, high: 4000 } as const;
const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_ROUTES = 32;

const id = z.string().regex(/^[\w.:/-]{1,200}$/, 'must be 1 to 200 letters, digits or _.:/-');
const latency = z.enum(['low', 'medium', 'high']);

const local = z.strictObject({ kind: z.literal('local'), id, model: name, latency: latency.default('medium') });
const adapted = z.strictObject({
  kind: z.literal('adapter'),
  id,
  model: name,
  adapter: name,
  latency: latency.default('medium'),
});
const remote = z.strictObject({
  kind: z.literal('remote'),
  id,
  /** Including `/v1`. */
  url: z.string().max(2048),
  /** The environment variable with the key; keys are never stored in the file. */
  apiKeyEnv: z
    .string()
    .regex(/^[A-Z_][A-Z0-9_]*$/i)
    .max(200)
    .optional(),
  model: name,
  pricePerMTokens: z.strictObject({ input: z.number().min(0).max(1e6), output: z.number().min(0).max(1e6) }),
  latency: latency.default('medium'),
  /** Time to the first token, and between two tokens. */
  timeoutMs: z.int().min(10).max(3_600_000).default(DEFAULT_TIMEOUT_MS),
});

const schema = z.strictObject({
  alias: name.default('auto'),
  candidates: z
    .array(z.discriminatedUnion('kind', [local, adapted, remote]))
    .min(1)
    .max(MAX_ROUTES),
  /** The candidate for uncertain requests. */
  default: id,
  weights: z
    .strictObject({ perSecond: z.number().min(0).max(10), perCost: z.number().min(0).max(1e6) })
    .default({ perSecond: 0, perCost: 0 }),
  minConfidence: z.number().min(0).max(1).default(MIN_CONFIDENCE),
  /** Whether requests with recalled texts stay with the candidates of this machine. */
  memoryStaysLocal: z.boolean().default(false),
  /** Longest wait for the sentence vector of a request, for routers that gain by it. 0: routers read the text alone. */
  encoderTimeoutMs: z.int().min(0).max(10_000).default(50),
  /** Total quality that exploration may cost, per tenant and since the start. Default: no exploration. */
  exploration: z
    .strictObject({ regretBudget: z.number().min(0).max(1e6), deviation: z.number().min(0).max(1).default(0.3) })
    .nullable()
    .default(null),
});

export type LocalRoute = z.output<typeof local>;
export type AdapterRoute = z.output<typeof adapted>;
export type RemoteRoute = z.output<typeof remote>;
export type RouteCandidate = LocalRoute | AdapterRoute | RemoteRoute;

/** The configured routes. */
export interface RouteConfig {
  /** The model name that lets the router choose. */
  readonly alias: string;
  readonly candidates: readonly RouteCandidate[];
  readonly safeDefault: number;
  readonly weights: { readonly perSecond: number; readonly perCost: number };
  readonly minConfidence: number;
  readonly memoryStaysLocal: boolean;
  /** 0: no sentence vectors. */
  readonly encoderTimeoutMs: number;
  readonly exploration: { readonly regretBudget: number; readonly deviation: number } | null;
  /** The candidates in the form that routers use. */
  readonly priced: readonly Candidate[];
  /** The key of a remote candidate. A function, so that a printed configuration shows no key. */
  keyOf(candidate: RemoteRoute): string | null;
}

function refuse(message: string, option: string): never {
  throw new RuvLLMError('invalid_option', `route configuration: ${message}`, { data: { option } });
}

/** Reads a route file; rejects unknown fields and missing API keys. */
export function readRouteConfig(
  given: unknown,
  environment: Readonly<Record<string, string | undefined>>,
): RouteConfig {
  const config = parseWith<z.output<typeof schema>>(schema as never, given, 'route configuration');
  const { alias, candidates, weights, minConfidence, memoryStaysLocal, encoderTimeoutMs, exploration } = config;
  const ids = candidates.map((one) => one.id);
  const twice = ids.find((one, i) => ids.indexOf(one) !== i);
  if (twice !== undefined) refuse(`"${twice}" is configured twice`, 'candidates');
  if (ids.includes(alias)) refuse(`"${alias}" is the router's alias and cannot be a candidate`, 'alias');
  const safeDefault = ids.indexOf(config.default);
  if (safeDefault < 0) refuse(`the default "${config.default}" is not one of ${ids.join(', ')}`, 'default');
  const keys = new Map<string, string>();
  for (const one of candidates) {
    if (one.kind !== 'remote') continue;
    checkUrl(one);
    if (one.apiKeyEnv === undefined) continue;
    const key = environment[one.apiKeyEnv] ?? '';
    // Header values are ASCII without line breaks.
    if (!/^[\x21-\x7e]{1,4096}$/.test(key)) refuse(`${one.apiKeyEnv}, the key of "${one.id}", is not set`, one.apiKeyEnv); // prettier-ignore
    keys.set(one.id, key);
  }
  return {
    alias,
    candidates,
    safeDefault,
    weights,
    minConfidence,
    memoryStaysLocal,
    encoderTimeoutMs,
    exploration,
    priced: candidates.map(toPriced),
    keyOf: (candidate) => keys.get(candidate.id) ?? null,
  };
}

function checkUrl({ id: whose, url }: RemoteRoute): void {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) refuse(`the url of "${whose}" must begin with http:// or https://`, 'url'); // prettier-ignore
  if (parsed.username !== '' || parsed.password !== '') refuse(`the url of "${whose}" contains a password; name a variable in apiKeyEnv instead`, 'url'); // prettier-ignore
  if (parsed.search !== '' || parsed.hash !== '') refuse(`the url of "${whose}" must end with its path`, 'url');
}

/** Price per token of an answer as long as its question. */
function toPriced(one: RouteCandidate): Candidate {
  const { input, output } = one.kind === 'remote' ? one.pricePerMTokens : { input: 0, output: 0 };
  return { id: one.id, kind: one.kind, pricePerToken: (input + output) / 1e6, latencyMs: EXPECTED_MS[one.latency] };
}
