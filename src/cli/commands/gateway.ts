import { createGateway } from '../../gateway/gateway.ts';
import { createFleetAffinity } from '../../gateway/fleet-affinity.ts';
import { type GatewayLimits, resolveGatewayLimits } from '../../gateway/gateway-options.ts';
import type { GatewayMetrics } from '../../gateway/gateway-metrics.ts';
import type { GatewayNode } from '../../gateway/node-table.ts';
import { listenGateway } from '../../node/gateway/listen-gateway.ts';
import { createHttpUpstream } from '../../platform/node/gateway/http-upstream.ts';
import { createNatsReleaseStore } from '../../platform/node/gateway/nats-release-store.ts';
import { deriveFleetKeys, fleetIdOf } from '../../server/fleet/fleet-keys.ts';
import { ownIdentity } from '../../platform/node/process/process-identity.ts';
import { openTracer } from '../../node/open-tracer.ts';
import { readOtlpOptions } from '../../server/telemetry/otlp-options.ts';
import type { CommandRunner } from '../command.ts';
import { SERVE_ADDRESS } from '../config/serve-address.ts';
import { collectOptions, withFlagNames } from '../flags.ts';
import { usageError } from '../usage-error.ts';
import { GATEWAY_FLAGS, GATEWAY_LIMIT_FLAGS } from './gateway-flags.ts';
import { hasFleetBus, openFleetBus } from './fleet-bus.ts';
import { readNodeUrl } from './node-url.ts';
import { readFleetSecret } from './fleet-secret.ts';
import { createCommandLogger, isLoopbackHost, readAddress, untilAborted } from './listening.ts';
import { openServedKeys } from './served-keys.ts';

export { GATEWAY_FLAGS as flags };

const SHUTDOWN_MS = 20_000;
const MAX_NODES = 1000;

/** Answers on one address in front of several nodes, until a signal stops it. */
export const run: CommandRunner = async (context) => {
  const { io, output, values } = context;
  const nodes = readNodes((values['--node'] as string[] | undefined) ?? [], hasFleetBus(context));
  const limits = withFlagNames(GATEWAY_LIMIT_FLAGS, values, () =>
    resolveGatewayLimits(collectOptions(GATEWAY_LIMIT_FLAGS, values) as Partial<GatewayLimits>),
  );
  const { host, port } = readAddress(values, SERVE_ADDRESS);
  const isLoopback = isLoopbackHost(host);
  const { keys, hasKeys } = openServedKeys(context, host);
  const secret = readFleetSecret(context);
  const fleetKeys = secret === null ? null : deriveFleetKeys(secret);
  const upstream = createHttpUpstream();
  const logger = createCommandLogger(context);
  const otlp = readOtlpOptions(values['--otlp'] as string | undefined, io.environment);
  const releases = fleetKeys === null ? null : createNatsReleaseStore({ fleet: fleetIdOf(fleetKeys) });
  const bus = await openFleetBus(context, fleetKeys, logger, releases ?? {});
  const gateway = createGateway({
    nodes,
    upstream,
    keys,
    isOpen: !hasKeys,
    browsers: { hosts: isLoopback ? ['localhost', '127.0.0.1', '[::1]', host.toLowerCase()] : null, corsOrigins: [] },
    limits,
    logger,
    version: context.version,
    nodeName: ownIdentity().host,
    ...(otlp === null ? { tracer: await openTracer() } : { otlp }),
    shared: bus === null ? null : { bus, keys: fleetKeys!, releases: releases! },
    ...(fleetKeys === null
      ? {}
      : {
          openAffinity: (all: readonly GatewayNode[], metrics: GatewayMetrics) =>
            createFleetAffinity({ nodes: all, keys: fleetKeys, bus, upstream, metrics, logger }),
        }),
  });
  const listening = await listenGateway(gateway, { host, port }).catch(async (error: unknown) => {
    await bus?.close();
    throw error;
  });
  try {
    await gateway.ready();
    const isUp = gateway.nodes.filter(({ health }) => health === 'up').length;
    output.note(`gateway: OpenAI-compatible API at ${listening.url}/v1`);
    output.note(`nodes: ${isUp} of ${gateway.nodes.length} are up${bus === null ? '' : '; others join over NATS'}`);
    for (const { name, url, health, reason } of gateway.nodes) {
      output.note(`  ${name} ${url}: ${health}${reason === null ? '' : ` (${reason})`}`);
    }
    output.document({ url: listening.url, isOpen: !hasKeys, nodes: gateway.nodes.length, nodesUp: isUp });
    await untilAborted(io.signal);
    output.note('stopping: waiting for requests in progress');
    io.acceptSignal?.();
  } finally {
    await listening.close((values['--shutdown-timeout'] as number | undefined) ?? SHUTDOWN_MS);
    await bus?.close();
  }
};

function readNodes(urls: readonly string[], announcesNodes: boolean): string[] {
  if (urls.length === 0 && !announcesNodes) {
    throw usageError('a gateway requires nodes: pass --node URL for each, or --nats URL', '--node');
  }
  if (urls.length > MAX_NODES) throw usageError(`--node: ${urls.length} nodes; the limit is ${MAX_NODES}`, '--node');
  const nodes = urls.map((text) => readNodeUrl('--node', text));
  const twice = nodes.find((url, index) => nodes.indexOf(url) !== index);
  if (twice !== undefined) throw usageError(`--node ${twice} is given twice`, '--node');
  return nodes;
}
