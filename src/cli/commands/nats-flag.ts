import type { Flag } from '../flags.ts';

/** The message server that connects the processes of a fleet. It may contain a password. */
export const NATS_FLAG: Flag = {
  name: '--nats',
  value: 'url',
  isSecret: true,
  variable: 'RUVLLM_NATS_URL',
  description:
    'NATS server with JetStream that connects nodes and gateways, such as nats://10.0.0.5:4222; requires --fleet-secret (RUVLLM_NATS_URL)',
};

export const ADVERTISE_FLAG: Flag = {
  name: '--advertise',
  value: 'url',
  variable: 'RUVLLM_ADVERTISE',
  description:
    'with --nats: address that gateways use for this node; default: that of --host and --port (RUVLLM_ADVERTISE)',
};
