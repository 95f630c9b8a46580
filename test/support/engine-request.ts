import type { AdmittedRequest, EngineRequest } from '../../src/engine/types.ts';

/** A request with the least to say: the defaults of everything that is not about tokens. As admitted, for what works on such. */
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
    // Only `Engine.add` reads these, and it finds out what they are.
    adapters: (request.adapters ?? []) as AdmittedRequest['adapters'],
  };
}
