import { openDashboardFiles } from '../../node/server/dashboard-files.ts';
import { prepareEngineThread } from '../../node/engine/spawn-engine.ts';
import { createAdapterFolders } from '../../node/server/adapter-folders.ts';
import { defaultKeyFolder } from '../../node/server/key-folder.ts';
import { createFolderErasure, defaultMasterKeyPath, keptStateProblem, spillFolder } from '../../node/kept-state.ts';
import { openTracer } from '../../node/open-tracer.ts';
import { createModelFiles } from '../../node/server/model-files.ts';
import { listen, type Listening } from '../../node/server/serve.ts';
import { createServer } from '../../server/app.ts';
import { systemClock } from '../../core/clock.ts';
import { createFleetNode } from '../../server/fleet/fleet-node.ts';
import { MISSING_DASHBOARD } from '../../server/dashboard-files.ts';
import { resolveServerLimits, type ServerLimits } from '../../server/limits.ts';
import { loadChatRoute } from '../../server/routes/table.ts';
import { readOtlpOptions } from '../../server/telemetry/otlp-options.ts';
import { nodeHubFiles } from '../../platform/node/files/hub-files.ts';
import { setAsideDamagedMasterKey } from '../../platform/node/sealing/master-key.ts';
import { collectWhenIdle } from '../../platform/node/process/collect-when-idle.ts';
import { ownIdentity } from '../../platform/node/process/process-identity.ts';
import { createModelHost, type ModelHost } from '../../runtime/requests/model-host.ts';
import type { CommandContext, CommandRunner } from '../command.ts';
import { collectOptions, fillValues, withFlagNames } from '../flags.ts';
import { LOAD_FLAGS, readModelConfig } from '../load-flags.ts';
import { openHub } from '../open-hub.ts';
import { usageError } from '../usage-error.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import type { Learning } from '../../runtime/learning/learning.ts';
import { registerServer } from '../servers/server-registry.ts';
import { createCommandLogger, isLoopbackHost, readAddress, untilAborted } from './listening.ts';
import { openServedKeys } from './served-keys.ts';
import { type AnnouncedNode, announceServer, hasFleetBus } from './fleet-bus.ts';
import { readFleetSecret } from './fleet-secret.ts';
import { openKvShared, readKvShared } from './kv-shared.ts';
import { BATCH_FLAGS, LIMIT_FLAGS, SERVE_DEFAULTS, SERVE_SETTING_FLAGS } from './serve-flags.ts';
import { createServedCatalog } from './served-catalog.ts';
import { createServedLibrary } from './served-library.ts';
import { openServedLearning, readLearningFlags } from './served-learning.ts';
import { readOpinions } from './serve-quality.ts';
import { openServedRouting, readRouteFile } from './served-routing.ts';
import { startServedBackups } from './served-backups.ts';
import { openServedMcp } from './served-mcp.ts';
import { openServedMemory } from './served-memory.ts';
import { resolveServedModels } from './served-models.ts';

/** Serves models over HTTP until a signal stops it. */
export const run: CommandRunner = async (commandContext) => {
  const { io, output } = commandContext;
  const values = fillValues(SERVE_SETTING_FLAGS, commandContext.values, io.environment);
  const context = { ...commandContext, values };
  const secret = readFleetSecret(context);
  const kvShared = await readKvShared(context, secret);
  const loadConfig = readModelConfig(values, io.environment, [...LOAD_FLAGS, ...BATCH_FLAGS]);
  const config: ModelConfig = kvShared === null ? loadConfig : { ...loadConfig, kvShared };
  const otlp = readOtlpOptions(values['--otlp'] as string | undefined, io.environment);
  const fleet = secret === null ? null : createFleetNode(secret);
  const limits = readLimits(context, fleet !== null);
  const learningFlags = readLearningFlags(context);
  const { host, port } = readAddress(values, SERVE_DEFAULTS);
  const isLoopback = isLoopbackHost(host);
  const corsOrigins = (values['--cors'] as string[] | undefined) ?? [];
  const { keys, hasKeys } = openServedKeys(context, host, corsOrigins);
  if (!hasKeys && corsOrigins.length > 0) {
    throw usageError(
      `pages of ${corsOrigins.join(', ')} could use the server and create keys, but there are no API keys; create one with: ruvllm keys create NAME`,
      '--cors',
    );
  }
  if (context.args.length > 0 && config.engineProcess !== true) prepareEngineThread();
  let learning: Learning | null = null;
  const lateConfig = (id: string): ModelConfig => ({
    ...(learning === null ? {} : { learning, modelName: id }),
    ...(fleet === null ? {} : { blockEvents: fleet.blockEvents(id) }),
  });
  const { entries, firstPath } = await resolveServedModels(context, config, lateConfig);
  const releases = fleet === null || !hasFleetBus(context) ? null : (await import('./served-releases.ts')).openServedReleases({ fleet, models: () => models, logger: createCommandLogger(context), signal: io.signal }); // prettier-ignore
  const models: ModelHost = createModelHost({
    entries,
    budgetBytes: (values['--models-budget'] as number | undefined) ?? null,
    groups: context.config.presets.groups,
    clock: systemClock,
    ...(releases === null ? {} : { onLoad: releases.attach }),
  });
  const routeConfig = await readRouteFile(context);
  const mcp = await openServedMcp(context);
  const quality = readOpinions(context, entries.map(({ id }) => id)); // prettier-ignore
  // Before anything reads it. Moved aside, it stops neither the models nor a memory with a key of its own.
  const keyProblem = setAsideDamagedMasterKey(defaultMasterKeyPath());
  const served = await openServedMemory(context, firstPath);
  const { memory, folder: memoryFolder, summary: memorySummary, ready } = served;
  const spill = config.kvSpill == null ? null : spillFolder(config.kvSpill.folder);
  if (spill !== null && memory !== null) {
    const part = createFolderErasure(spill);
    await memory.eventually(() => memory.erasure.addPlace(part));
  }
  if (kvShared !== null) memory?.erasure.register((await openKvShared(kvShared, io.environment)).erasure);
  const servedLearning = await openServedLearning(context, memory, learningFlags);
  learning = servedLearning.learning;
  const routing = await openServedRouting(context, routeConfig, models, memory);
  const federation =
    memory === null
      ? null
      : (await import('../../node/learning/open-federation.ts')).openNodeFederation(memory, routing);
  if (routing !== null && memory !== null && learning !== null) {
    const { createRouterLoop } = await import('../../runtime/routing/router-loop.ts');
    learning.join(createRouterLoop(memory, routing, learning.work, federation));
  }
  const backups = await startServedBackups(context, memory);
  // The parser sets `--no-` flags to false.
  const isDashboardWanted = values['--no-dashboard'] !== false;
  const pages = isDashboardWanted ? openDashboardFiles() : null;
  const hub = openHub();
  const server = createServer({
    version: context.version,
    nodeName: ownIdentity().host,
    models,
    keys,
    isOpen: !hasKeys,
    browsers: {
      hosts: isLoopback ? ['localhost', '127.0.0.1', '[::1]', host.toLowerCase()] : null,
      corsOrigins,
    },
    limits,
    logger: createCommandLogger(context),
    ...(otlp === null ? { tracer: await openTracer() } : { otlp }),
    memory,
    learning,
    problems: () => {
      const spillProblem = spill === null ? null : keptStateProblem(spill);
      return [
        ...(served.whyNone === null ? [] : [{ part: 'memory' as const, reason: served.whyNone }]),
        ...(keyProblem === null ? [] : [{ part: 'master-key' as const, reason: keyProblem }]),
        ...(spillProblem === null ? [] : [{ part: 'spill' as const, reason: spillProblem }]),
        ...(fleet?.releases?.problem == null
          ? []
          : [{ part: 'fleet-adapters' as const, reason: fleet.releases.problem }]),
        ...(backups?.problem() ? [{ part: 'backup' as const, reason: backups.problem()! }] : []),
      ];
    },
    preparing: served.preparing,
    corrections: learningFlags.recallsCorrections,
    quality,
    routing,
    federation,
    fleet,
    dashboard: pages && { keys: pages.keys, get: (path) => pages.get(path) ?? MISSING_DASHBOARD.get(path) },
    strict: values['--strict'] === true,
    modelFallback: values['--model-fallback'] === true,
    catalog: createServedCatalog(hub, config, (id) => ({ ...config, ...lateConfig(id) })),
    library: createServedLibrary(hub),
    mcp,
    modelFiles: createModelFiles(),
    findAdapter: createAdapterFolders([hub.cacheRoot, ...((values['--adapter-folder'] as string[] | undefined) ?? [])]),
    freeDiskBytes: () => nodeHubFiles.freeBytes(defaultKeyFolder()),
  });
  let listening: Listening;
  try {
    listening = await listen(server, { host, port });
  } catch (error) {
    await learning?.close();
    await memory?.close();
    throw error;
  }
  // A failure is that of the first request.
  setImmediate(() => void loadChatRoute().catch(() => {}));
  const unregister = registerServer(listening.url, Date.now());
  let announced: AnnouncedNode | null = null;
  let preparing: Promise<void> | null = null;
  let stopCollecting = (): void => {};
  try {
    announced = await announceServer(context, fleet?.keys ?? null, listening.url, server.services.logger, releases);
    const ids = entries.map(({ id }) => id);
    if (ids.length > 0) {
      const firstModel = models.acquire(ids[0]!, { signal: io.signal, waitMs: 2 ** 31 - 1 });
      output.note(`listening on ${listening.url}; loading ${ids[0]!} …`);
      (await firstModel).release();
    }
    await ready;
    await releases?.started;
    output.note(`ready: OpenAI-compatible API at ${listening.url}/v1`);
    if (pages !== null) output.note(`dashboard: ${listening.url}/`);
    output.note(ids.length > 0 ? `models: ${ids.join(', ')}` : 'models: none; choose one in the dashboard, or run ruvllm serve MODEL or FILE.gguf'); // prettier-ignore
    if (memorySummary !== null) output.note(memorySummary);
    if (mcp !== null && mcp.pool.configs.length > 0) {
      output.note(
        `tools of MCP servers: ${mcp.pool.configs.map(({ name }) => name).join(', ')}; started by their first use`,
      );
    }
    for (const { part, reason } of server.services.problems()) {
      if (part !== 'memory' && part !== 'backup') output.note(reason); // those two have lines of their own
    }
    if (otlp !== null) output.note(`telemetry: ${[otlp.tracesUrl, otlp.metricsUrl].filter((url) => url !== null).map((url) => new URL(url).host)[0]} (OTLP)`); // prettier-ignore
    if (announced !== null) output.note(`fleet: announced as ${announced.url} over NATS`);
    output.note(servedLearning.summary);
    output.note(
      hasKeys
        ? 'every request requires an API key'
        : 'no API keys: anyone on this machine can use the server; ruvllm keys create NAME changes that at once',
    );
    output.document({
      url: listening.url,
      models: ids,
      isOpen: !hasKeys,
      memory: memoryFolder,
      isLearning: learning !== null,
    });
    preparing = served.prepare();
    const { openMemoryTrim } = await import('../../platform/node/kernels/native-addon.ts');
    stopCollecting = collectWhenIdle({ afterwards: openMemoryTrim() });
    await untilAborted(io.signal);
    output.note('stopping: waiting for requests in progress');
    io.acceptSignal?.();
  } finally {
    stopCollecting();
    backups?.stop();
    unregister();
    await announced?.leave();
    await preparing; // the download ends with the signal; a memory that closes meanwhile would leave an engine behind
    await listening.close(
      (values['--shutdown-timeout'] as number | undefined) ?? SERVE_DEFAULTS.shutdownTimeout * 1000,
    );
  }
};

/**
 * How long the headers of a stream wait for its first token in a fleet: they name the blocks of the prompt to the gateway. As long as
 * without them a stream would send its first keep-alive.
 */
const FLEET_FIRST_EVENT_MS = 15_000;

function readLimits({ io, values }: CommandContext, isInFleet: boolean): ServerLimits {
  const given = collectOptions(LIMIT_FLAGS, values, io.environment) as Partial<ServerLimits>;
  const limits = isInFleet ? { ...given, firstEventMs: FLEET_FIRST_EVENT_MS } : given;
  return withFlagNames(LIMIT_FLAGS, values, () => resolveServerLimits(limits));
}
