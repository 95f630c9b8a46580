import type { AdmittedRequest } from '../../src/engine/types.ts';

/** A request with the least to say: the defaults of everything that is not about tokens. */
export function engineRequest(
  request: Pick<AdmittedRequest, 'id' | 'promptIds' | 'maxTokens' | 'sampler'> & Partial<AdmittedRequest>,
): AdmittedRequest {
  return {
    stopIds: new Set(),
    tenant: 'tenant',
    adapters: [],
    adapterHash: null,
    cachePrefix: true,
    retention: 'ordinary',
    priority: 0,
    timeoutMs: null,
    ...request,
  };
}
