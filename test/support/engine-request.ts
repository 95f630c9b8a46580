import type { EngineRequest } from '../../src/engine/types.ts';

/** A request with the least to say: the defaults of everything that is not about tokens. */
export function engineRequest(
  request: Pick<EngineRequest, 'id' | 'promptIds' | 'maxTokens' | 'sampler'> & Partial<EngineRequest>,
): EngineRequest {
  return {
    stopIds: new Set(),
    tenant: 'tenant',
    adapterHash: null,
    cachePrefix: true,
    retention: 'ordinary',
    priority: 0,
    timeoutMs: null,
    ...request,
  };
}
