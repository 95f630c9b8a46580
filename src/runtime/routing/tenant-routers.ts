import { createReasoningBank, type ReasoningBank } from '../../learning/reasoning-bank/bank.ts';
import { createRouter, type Router } from '../../learning/router/index.ts';
import { getRouterText, ROUTER_LINE } from '../../learning/router-training/router-line.ts';
import { isRouterFor, loadSupported } from '../../learning/router-training/train-router.ts';
import { createTrajectories } from '../../learning/trajectories/trajectories.ts';
import { createFloatBlobs } from '../../learning/versions/blobs.ts';
import { createVersionLog } from '../../learning/versions/version-log.ts';
import { createLruMap } from '../../memory/common/lru-map.ts';
import type { Memory } from '../../memory/memory.ts';
import type { RouteConfig } from './route-config.ts';

/** What is known for one tenant. */
export interface TenantRouter {
  /** 0: none serves. */
  readonly version: number;
  readonly router: Router | null;
  /** Where there are none, nobody looks for them. */
  readonly hasPatterns: boolean;
}

/** Routers by tenant, read once and looked after from time to time; a tenant's is never another's. */
export interface TenantRouters {
  readonly bank: ReasoningBank;
  /** At once where it is known. */
  get(tenant: string): TenantRouter | Promise<TenantRouter>;
  /** What is known at once; null: it would have to be read. */
  peek(tenant: string): TenantRouter | null;
  reload(tenant: string): void;
  tenants(): readonly string[];
}

/** After it the store is asked again while what is known serves on, */
const FRESH_MS = 30_000;
/** and after this nothing serves that was not asked for. */
const STALE_MS = 300_000;
const MAX_TENANTS = 1000;

interface Kept {
  readonly value: TenantRouter;
  readonly readMs: number;
}

export function createTenantRouters(
  memory: Memory,
  config: RouteConfig,
  context: { readonly now: () => number; readonly report: (message: string) => void },
): TenantRouters {
  const { store, services } = memory;
  const versions = createVersionLog(store, services);
  const blobs = createFloatBlobs(store, services);
  const bank = createReasoningBank({ store, services, trajectories: createTrajectories(store, services) });
  const kept = createLruMap<Kept>(MAX_TENANTS);
  const loading = new Map<string, Promise<TenantRouter>>();

  async function read(tenant: string, known: TenantRouter | null): Promise<TenantRouter> {
    const active = await versions.active(tenant, ROUTER_LINE);
    const hasPatterns = (await bank.count(tenant)) > 0;
    const version = active?.version ?? 0;
    if (known !== null && known.version === version) return { ...known, hasPatterns };
    const text = await getRouterText(blobs, tenant, active);
    const stored = text === null ? null : loadSupported(text, services.sha256);
    if (text !== null && stored === null)
      context.report(
        `router version ${version} is of a kind that is no longer supported: the safe default answers until the next training`,
      );
    if (stored === null || !isRouterFor(stored, config.priced)) return { version, router: null, hasPatterns };
    const { encoder, estimator, rule } = stored;
    // Prices are those of now. Doubts come after the patterns were heard, not before.
    const now = { ...rule, candidates: config.priced, weights: config.weights, minConfidence: 0 };
    return { version, router: createRouter(encoder, estimator, now), hasPatterns };
  }

  function load(tenant: string): Promise<TenantRouter> {
    const known = loading.get(tenant);
    if (known !== undefined) return known;
    const before = kept.peek(tenant)?.value ?? null;
    const reading: Promise<TenantRouter> = read(tenant, before)
      .catch((error: unknown): TenantRouter => {
        // A router that cannot be read is none: the safe default answers.
        context.report(`reading a router failed: ${error instanceof Error ? error.message : String(error)}`);
        return { version: 0, router: null, hasPatterns: false };
      })
      .then((value) => {
        if (loading.get(tenant) === reading) {
          loading.delete(tenant);
          kept.set(tenant, { value, readMs: context.now() });
        }
        return value;
      });
    loading.set(tenant, reading);
    return reading;
  }

  return {
    bank,
    get(tenant) {
      const known = kept.get(tenant);
      const ageMs = known === undefined ? Infinity : context.now() - known.readMs;
      if (ageMs > STALE_MS) return load(tenant);
      if (ageMs > FRESH_MS) void load(tenant);
      return known!.value;
    },
    peek: (tenant) => kept.peek(tenant)?.value ?? null,
    reload(tenant) {
      loading.delete(tenant); // what is being read may be what was before
      kept.delete(tenant);
    },
    tenants: () => [...kept.entries()].map(([tenant]) => tenant),
  };
}
