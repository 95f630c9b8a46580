import { SERVE_ADDRESS } from '../config/serve-address.ts';
import { defineFlags, type Flag } from '../flags.ts';
import { FLEET_SECRET_FLAG } from './fleet-secret-flag.ts';
import { NATS_FLAG } from './nats-flag.ts';
import { API_KEY_FLAG, OTLP_FLAG } from './serve-flags.ts';

/** Limits of the gateway, across all nodes. */
export const GATEWAY_LIMIT_FLAGS: readonly Flag[] = defineFlags({
  '--max-body <size> maxBodyBytes': 'maximum size of a request body; default 4MiB',
  '--max-held <size> maxHeldBytes':
    'maximum size of the bodies of all concurrent requests; one tenant may have half of it; default 256MiB',
  '--max-requests <n> maxRequests': 'maximum number of concurrent requests; default 1024',
  '--max-requests-per-tenant <n> maxRequestsPerTenant':
    'maximum number of concurrent requests per tenant, on all nodes together; default 128',
  '--requests-per-minute <x> requestsPerMinute': 'rate limit per tenant, on all nodes together; default 12000',
  '--health-interval <seconds> healthIntervalMs': 'how often each node is asked for its health; default 1',
  '--node-wait <seconds> nodeWaitMs': 'how long a request waits while no node is up; default 5',
  '--first-byte-timeout <seconds> firstByteMs':
    'how long a node may take to begin a stream, before another one gets the request; default 180',
  '--answer-timeout <seconds> answerMs':
    'how long a node may take for an answer that is no stream, before another one gets the request; default 900',
});

export const GATEWAY_FLAGS: readonly Flag[] = [
  ...defineFlags({
    '--node <url>...':
      'address of a node, such as http://10.0.0.2:8080 (repeatable); with --nats, nodes announce themselves',
    '--host <address>': `address to listen on; default ${SERVE_ADDRESS.host}`,
    '--port <n>': `port to listen on; default ${SERVE_ADDRESS.port}, 0 is any free port`,
    ...OTLP_FLAG,
    '--log': 'write a JSON line for every request to stderr',
    '--shutdown-timeout <seconds>': 'how long running requests may continue after a signal; default 20',
  }),
  API_KEY_FLAG,
  FLEET_SECRET_FLAG,
  NATS_FLAG,
  ...GATEWAY_LIMIT_FLAGS,
];
