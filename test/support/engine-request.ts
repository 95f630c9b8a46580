import type { AdmittedRequest, EngineRequest } from '../../src/engine/types.ts';

/** A minimal request with default values for everything but tokens; as admitted, for code that needs such. */
export function engineRequest(
  request: Pick<EngineRequest, 'id' | 'promptIds' | 'maxTokens' | 'sampler'> &
    Partial<EngineRequest> &
    Partial<Pick<AdmittedRequest, 'adapterHash'>>,
): AdmittedRequest {
  return {
    stopIds: new Set(),
    tenant: 'tenant',
    adapterHash: null,
    cachePrefix: true,
    retention: 'ordinary',
    priority: 0,
    timeoutMs: null,
    ...request,
    // Only `Engine.add` reads and resolves these.
    adapters: (request.adapters ?? []) as AdmittedRequest['adapters'],
  };
}
