import { type Clock, within } from '../../core/clock.ts';
import { createReasoningBank, type ReasoningBank } from '../../learning/reasoning-bank/bank.ts';
import { createRouter, type Router } from '../../learning/router/index.ts';
import { getRouterText, ROUTER_LINE, routerPointer } from '../../learning/router-training/router-line.ts';
import { isRouterFor, loadSupported } from '../../learning/router-training/train-router.ts';
import { createTrajectories } from '../../learning/trajectories/trajectories.ts';
import { createFloatBlobs } from '../../learning/versions/blobs.ts';
import { createVersionLog } from '../../learning/versions/version-log.ts';
import { createLruMap } from '../../memory/common/lru-map.ts';
import type { Memory } from '../../memory/memory.ts';
import type { LearnedSampling, RouterParameters } from '../../memory/schemas/policy.ts';
import type { RouteConfig } from './route-config.ts';
import { messageOf } from '../../core/errors.ts';

/** The router policy of a tenant, with the router loaded. */
export interface TenantRouter {
  /** 0: the bundled default. */
  readonly policyVersion: number;
  /** Version of the router; 0: none. */
  readonly version: number;
  readonly router: Router | null;
  readonly sampling: readonly LearnedSampling[];
  /** False: no search for patterns. */
  readonly hasPatterns: boolean;
}

export const NO_ROUTER: TenantRouter = { policyVersion: 0, version: 0, router: null, sampling: [], hasPatterns: false };

/** Routers by tenant. Every request reads the router policy, so that a rollback of another process decides the next one. */
export interface TenantRouters {
  readonly bank: ReasoningBank;
  /** Starts to read the policy of a tenant whose request will be decided soon. */
  foresee(tenant: string): void;
  get(tenant: string): Promise<TenantRouter>;
  /** The router loaded last; null: none. */
  peek(tenant: string): TenantRouter | null;
  tenants(): readonly string[];
  /** The next `get` reads the policy and the router from the store. */
  forget(tenant: string): Promise<void>;
}

const MAX_TENANTS = 1000;
/** A database that answers later decides the next request; this one takes the cached policy. */
const REFRESH_MS = 20;

export function createTenantRouters(
  memory: Memory,
  config: RouteConfig,
  report: (message: string) => void,
  clock: Clock,
): TenantRouters {
  const { store, services, watch } = memory;
  const versions = createVersionLog(
    store,
    services,
    routerPointer(() => memory.policies),
  );
  const blobs = createFloatBlobs(store, services);
  const bank = createReasoningBank({ store, services, watch, trajectories: createTrajectories(store, services) });
  const loaded = createLruMap<TenantRouter>(MAX_TENANTS);
  const loading = new Map<string, Promise<TenantRouter>>();
  const refreshing = new Map<string, Promise<unknown>>();

  async function readRouter(tenant: string, { version }: RouterParameters): Promise<Router | null> {
    const text = version === 0 ? null : await getRouterText(blobs, tenant, await versions.get(tenant, ROUTER_LINE, version)); // prettier-ignore
    if (text === null) return null;
    const stored = loadSupported(text, services.sha256);
    if (stored === null)
      report(`router version ${version} has an unsupported type; the safe default answers until the next training`);
    if (stored === null || !isRouterFor(stored, config.priced)) return null;
    const { encoder, estimator, rule } = stored;
    // Current prices; the confidence threshold applies after the patterns.
    const now = { ...rule, candidates: config.priced, weights: config.weights, minConfidence: 0 };
    return createRouter(encoder, estimator, now);
  }

  async function read(tenant: string): Promise<TenantRouter> {
    const { policyVersion, parameters } = (await memory.policies.get(tenant, 'router'))!;
    const hasPatterns = (await bank.count(tenant)) > 0;
    const before = loaded.peek(tenant);
    if (before?.policyVersion === policyVersion) return { ...before, hasPatterns };
    const { version, sampling } = parameters;
    const router = await readRouter(tenant, parameters).catch((error: unknown) => {
      // Without a readable router the safe default answers.
      report(`reading a router failed: ${messageOf(error)}`);
      return null;
    });
    return { policyVersion, version, router, sampling, hasPatterns };
  }

  function load(tenant: string): Promise<TenantRouter> {
    const begun = loading.get(tenant);
    if (begun !== undefined) return begun;
    const reading = read(tenant)
      .catch((error: unknown) => {
        report(`reading the router policy failed: ${messageOf(error)}`);
        return NO_ROUTER;
      })
      .then((value) => {
        loading.delete(tenant);
        loaded.set(tenant, value);
        return value;
      });
    loading.set(tenant, reading);
    return reading;
  }

  /** Only then can another process change the policy. */
  const isShared = memory.watch === null;
  /** Without the store, the cached policy decides. */
  const refresh = (tenant: string): Promise<unknown> => memory.policies.refresh(tenant, 'router').catch(() => {});

  return {
    bank,
    foresee(tenant) {
      if (isShared && loaded.peek(tenant) !== undefined) refreshing.set(tenant, refresh(tenant));
    },
    async get(tenant) {
      // The first load reads the policy anyway.
      if (isShared && loaded.peek(tenant) !== undefined) {
        const begun = refreshing.get(tenant);
        refreshing.delete(tenant);
        await within(clock, REFRESH_MS, begun ?? refresh(tenant));
      }
      const known = loaded.get(tenant);
      const policy = memory.policies.peek(tenant, 'router');
      return known !== undefined && policy?.policyVersion === known.policyVersion ? known : load(tenant);
    },
    async forget(tenant) {
      await loading.get(tenant);
      loaded.delete(tenant);
      refreshing.delete(tenant);
    },
    peek: (tenant) => loaded.peek(tenant) ?? null,
    tenants: () => [...loaded.entries()].map(([tenant]) => tenant),
  };
}
