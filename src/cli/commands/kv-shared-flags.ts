import { defineFlags, type Flag } from '../flags.ts';

/** Options for pages that nodes share. */
export const KV_SHARED_FLAGS: readonly Flag[] = defineFlags({
  '--kv-shared <place> kvShared.place':
    'store KV pages for other nodes of the fleet, encrypted, in this folder or s3://bucket/prefix; requires --fleet-secret; see docs/scale.md',
  '--kv-shared-limit <size> kvShared.limitBytes': 'maximum size of the KV pages that the nodes share; default 64GiB',
  '--kv-shared-timeout <seconds> kvShared.timeoutMs':
    'the longest a request waits for KV pages of other nodes; default 2',
});
