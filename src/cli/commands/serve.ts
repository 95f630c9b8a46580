import { readDashboardFiles } from '../../platform/node/dashboard-files.ts';
import { defaultKeyFolder, openKeyFolder } from '../../platform/node/key-folder.ts';
import { openTracer } from '../../platform/node/open-tracer.ts';
import { listen, type Listening } from '../../platform/node/serve.ts';
import { createServer } from '../../server/app.ts';
import { systemClock } from '../../core/clock.ts';
import { MISSING_DASHBOARD } from '../../server/dashboard-files.ts';
import { createKeyStore } from '../../server/keys/key-store.ts';
import { resolveServerLimits, type ServerLimits } from '../../server/limits.ts';
import { createJsonLogger, type Logger } from '../../server/logger.ts';
import { createModelHost } from '../../runtime/requests/model-host.ts';
import type { CommandContext, CommandRunner } from '../command.ts';
import { forgetFeedbackWith, openFeedbackFolder } from '../feedback-folder.ts';
import { collectOptions, fillValues, withFlagNames } from '../flags.ts';
import { readModelConfig } from '../load-flags.ts';
import { openHub } from '../open-hub.ts';
import { usageError } from '../usage-error.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import type { Learning } from '../../runtime/learning/learning.ts';
import { createRouterLoop } from '../../runtime/routing/router-loop.ts';
import { toSafeJson } from '../safe-text.ts';
import { noteServer } from '../servers/server-notes.ts';
import { LIMIT_FLAGS, SERVE_DEFAULTS, SERVE_OWN_FLAGS } from './serve-flags.ts';
import { createServedCatalog } from './served-catalog.ts';
import { openServedLearning, readLearningWish } from './served-learning.ts';
import { openServedRouting, readRouteFile } from './served-routing.ts';
import { openServedMemory } from './served-memory.ts';
import { resolveServedModels } from './served-models.ts';

/** Serves models over HTTP until it is told to stop. */
export const serve: CommandRunner = async (given) => {
  const { io, output } = given;
  const values = fillValues(SERVE_OWN_FLAGS, given.values, io.environment);
  const context = { ...given, values };
  const config = readModelConfig(values, io.environment);
  const limits = readLimits(context);
  const learningWish = readLearningWish(context);
  const { host, port } = readAddress(context);
  const keys = createKeyStore(openKeyFolder(defaultKeyFolder()), () => Date.now());
  const hasKeys = keys.list().some(({ revokedMs }) => revokedMs === null);
  const isLoopback = isLoopbackHost(host);
  if (!hasKeys && !isLoopback) {
    throw usageError(
      `${host} can be reached from other machines, and there are no API keys; create one with: ruvllm keys create NAME`,
      '--host',
    );
  }
  let learning: Learning | null = null;
  const learned = (id: string): ModelConfig => (learning === null ? {} : { learning, modelName: id });
  const served = await resolveServedModels(context, config, learned);
  const models = createModelHost({
    entries: served.entries,
    budgetBytes: (values['--models-budget'] as number | undefined) ?? null,
    clock: systemClock,
  });
  const routeConfig = readRouteFile(context);
  const memory = await openServedMemory(context, served.firstPath);
  const learns = openServedLearning(context, memory.opened, learningWish);
  learning = learns.opened;
  const routing = openServedRouting(context, routeConfig, models, memory.opened);
  if (routing !== null && memory.opened !== null && learning !== null) {
    learning.join(createRouterLoop(memory.opened, routing, learning.work));
  }
  const feedback = openFeedbackFolder();
  forgetFeedbackWith(feedback, memory.opened, learning);
  // What begins with `--no-` is false to the parser when it is typed.
  const isDashboardWanted = values['--no-dashboard'] !== false;
  const dashboard = isDashboardWanted ? readDashboardFiles() : null;
  const server = createServer({
    version: context.version,
    models,
    keys,
    isOpen: !hasKeys,
    feedback,
    browsers: {
      hosts: isLoopback ? ['localhost', '127.0.0.1', '[::1]', host.toLowerCase()] : null,
      corsOrigins: (values['--cors'] as string[] | undefined) ?? [],
    },
    limits,
    logger: createCommandLogger(context),
    tracer: await openTracer(),
    memory: memory.opened,
    learning,
    routing,
    dashboard: dashboard ?? (isDashboardWanted ? MISSING_DASHBOARD : null),
    catalog: createServedCatalog(openHub(), (id) => ({ ...config, ...learned(id) })),
  });
  let listening: Listening;
  try {
    listening = await listen(server, { host, port });
  } catch (error) {
    await learning?.close();
    await memory.opened?.close();
    throw error;
  }
  const forget = noteServer(listening.url, Date.now());
  try {
    const first = models.acquire(served.entries[0]!.id, { signal: io.signal, waitMs: 2 ** 31 - 1 });
    output.note(`listening on ${listening.url}; loading ${served.entries[0]!.id} …`);
    (await first).release();
    output.note(`ready: OpenAI's API is at ${listening.url}/v1`);
    if (dashboard !== null) output.note(`the dashboard is at ${listening.url}/`);
    else if (isDashboardWanted) output.note('the dashboard was not built; npm run build shows why');
    output.note(`models: ${served.entries.map(({ id }) => id).join(', ')}`);
    output.note(memory.place);
    output.note(learns.state);
    output.note(
      hasKeys
        ? 'every request needs an API key'
        : 'no API keys: open to everyone on this machine; ruvllm keys create NAME changes that with the next start',
    );
    output.document({
      url: listening.url,
      models: served.entries.map(({ id }) => id),
      isOpen: !hasKeys,
      memory: memory.folder,
      isLearning: learning !== null,
    });
    await untilAborted(io.signal);
    output.note('stopping: requests in progress may finish');
    io.acceptSignal?.();
  } finally {
    forget();
    await listening.close(
      (values['--shutdown-timeout'] as number | undefined) ?? SERVE_DEFAULTS.shutdownTimeout * 1000,
    );
  }
};

function readLimits({ io, values }: CommandContext): ServerLimits {
  const given = collectOptions(LIMIT_FLAGS, values, io.environment) as Partial<ServerLimits>;
  return withFlagNames(LIMIT_FLAGS, values, () => resolveServerLimits(given));
}

function readAddress({ values }: CommandContext): { host: string; port: number } {
  const host = (values['--host'] as string | undefined) ?? SERVE_DEFAULTS.host;
  const port = (values['--port'] as number | undefined) ?? SERVE_DEFAULTS.port;
  if (port < 0 || port > 65_535) throw usageError(`--port must be from 0 to 65535, got ${port}`, '--port');
  if (host === '') throw usageError('--host must not be empty', '--host');
  return { host, port };
}

/** Only this machine can reach it. A name other than `localhost` may be any address. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

function createCommandLogger({ io, values }: CommandContext): Logger {
  const logger = createJsonLogger((line) => io.stderr.write(`${toSafeJson(JSON.parse(line))}\n`), Date.now);
  const isVerbose = values['--log'] === true;
  return {
    log(level, event, fields) {
      if (isVerbose || level !== 'info') logger.log(level, event, fields);
    },
  };
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
