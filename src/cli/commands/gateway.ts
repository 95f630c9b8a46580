import { createGateway } from '../../gateway/gateway.ts';
import { createFleetAffinity } from '../../gateway/fleet-affinity.ts';
import { type GatewayLimits, resolveGatewayLimits } from '../../gateway/gateway-options.ts';
import type { GatewayMetrics } from '../../gateway/gateway-metrics.ts';
import type { GatewayNode } from '../../gateway/node-table.ts';
import { listenGateway } from '../../node/gateway/listen-gateway.ts';
import { defaultKeyFolder, openKeyFolder } from '../../node/server/key-folder.ts';
import { createHttpUpstream } from '../../platform/node/gateway/http-upstream.ts';
import { deriveFleetKeys } from '../../server/fleet/fleet-keys.ts';
import { createKeyStore } from '../../server/keys/key-store.ts';
import { withFixedKeys } from '../../server/keys/fixed-keys.ts';
import type { CommandRunner } from '../command.ts';
import { SERVE_ADDRESS } from '../config/serve-address.ts';
import { collectOptions, withFlagNames } from '../flags.ts';
import { usageError } from '../usage-error.ts';
import { GATEWAY_FLAGS, GATEWAY_LIMIT_FLAGS } from './gateway-flags.ts';
import { readFleetSecret } from './fleet-secret.ts';
import { createCommandLogger, isLoopbackHost, readAddress, readFixedKeys, untilAborted } from './listening.ts';

export { GATEWAY_FLAGS as flags };

const SHUTDOWN_MS = 20_000;
const MAX_NODES = 1000;

/** Answers on one address in front of several nodes, until a signal stops it. */
export const run: CommandRunner = async (context) => {
  const { io, output, values } = context;
  const nodes = readNodes((values['--node'] as string[] | undefined) ?? []);
  const limits = withFlagNames(GATEWAY_LIMIT_FLAGS, values, () =>
    resolveGatewayLimits(collectOptions(GATEWAY_LIMIT_FLAGS, values) as Partial<GatewayLimits>),
  );
  const { host, port } = readAddress(values, SERVE_ADDRESS);
  const isLoopback = isLoopbackHost(host);
  const fixedKeys = readFixedKeys(context, isLoopback);
  const keys = withFixedKeys(
    createKeyStore(openKeyFolder(defaultKeyFolder()), () => Date.now()),
    fixedKeys,
  );
  const hasKeys =
    fixedKeys.length > 0 || keys.list().some(({ revokedMs }) => revokedMs === null) || keys.problems().length > 0;
  if (!hasKeys && !isLoopback) {
    throw usageError(
      `${host} is reachable from other machines, but there are no API keys; create one with: ruvllm keys create NAME`,
      '--host',
    );
  }
  const secret = readFleetSecret(context);
  const upstream = createHttpUpstream();
  const logger = createCommandLogger(context);
  const gateway = createGateway({
    nodes,
    upstream,
    keys,
    isOpen: !hasKeys,
    browsers: { hosts: isLoopback ? ['localhost', '127.0.0.1', '[::1]', host.toLowerCase()] : null, corsOrigins: [] },
    limits,
    logger,
    ...(secret === null
      ? {}
      : {
          openAffinity: (all: readonly GatewayNode[], metrics: GatewayMetrics) =>
            createFleetAffinity({ nodes: all, keys: deriveFleetKeys(secret), upstream, metrics, logger }),
        }),
  });
  const listening = await listenGateway(gateway, { host, port });
  try {
    await gateway.ready();
    const isUp = gateway.nodes.filter(({ health }) => health === 'up').length;
    output.note(`gateway: OpenAI-compatible API at ${listening.url}/v1`);
    output.note(`nodes: ${isUp} of ${nodes.length} are up`);
    for (const { name, url, health, reason } of gateway.nodes) {
      output.note(`  ${name} ${url}: ${health}${reason === null ? '' : ` (${reason})`}`);
    }
    output.document({ url: listening.url, isOpen: !hasKeys, nodes: nodes.length, nodesUp: isUp });
    await untilAborted(io.signal);
    output.note('stopping: waiting for requests in progress');
    io.acceptSignal?.();
  } finally {
    await listening.close((values['--shutdown-timeout'] as number | undefined) ?? SHUTDOWN_MS);
  }
};

function readNodes(urls: readonly string[]): string[] {
  if (urls.length === 0) throw usageError('a gateway requires nodes: pass --node URL for each', '--node');
  if (urls.length > MAX_NODES) throw usageError(`--node: ${urls.length} nodes; the limit is ${MAX_NODES}`, '--node');
  const nodes = urls.map((text) => {
    const url = URL.canParse(text) ? new URL(text) : null;
    const isPlain =
      url !== null && /^https?:$/.test(url.protocol) && /^\/(v1\/?)?$/.test(url.pathname) && url.search === '';
    if (isPlain && url.username === '') return url.origin;
    throw usageError(
      `--node must be a URL such as http://10.0.0.2:8080, got ${JSON.stringify(text.slice(0, 200))}`,
      '--node',
    );
  });
  const twice = nodes.find((url, index) => nodes.indexOf(url) !== index);
  if (twice !== undefined) throw usageError(`--node ${twice} is given twice`, '--node');
  return nodes;
}
