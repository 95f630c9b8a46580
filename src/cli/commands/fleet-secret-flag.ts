import type { Flag } from '../flags.ts';

/** The secret that nodes and gateways of a fleet share. */
export const FLEET_SECRET_FLAG: Flag = {
  name: '--fleet-secret',
  value: 'text',
  isSecret: true,
  variable: 'RUVLLM_FLEET_SECRET',
  description:
    'secret of 32 or more characters that all nodes and gateways of a fleet share; see docs/scale.md (RUVLLM_FLEET_SECRET)',
};
