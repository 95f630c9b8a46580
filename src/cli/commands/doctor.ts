import { RuvLLMError } from '../../core/errors.ts';
import { DEFAULT_ENCODER, DEFAULT_MODELS } from '../../hub/default-models.ts';
import type { Hub } from '../../hub/hub.ts';
import { architectures, isDecoder } from '../../models/registry.ts';
import { defaultKeyFolder, openKeyFolder } from '../../node/server/key-folder.ts';
import { nodeHubFiles } from '../../platform/node/files/hub-files.ts';
import { readNativeFeatures } from '../../platform/node/kernels/native-addon.ts';
import { type AmxState, findAmxState, readLargePages } from '../../platform/node/kernels/native-tools.ts';
import { inspectModel } from '../../node/engine/inspect-model.ts';
import { estimateMemory } from '../../node/engine/estimate-memory.ts';
import { repackFolder } from '../../node/engine/repack-cache.ts';
import { listImages } from '../../node/engine/repack-folder.ts';
import { readSystemInfo, type SystemInfo } from '../../platform/node/process/system-info.ts';
import { resolveModelConfig } from '../../runtime/model-config.ts';
import type { CommandRunner } from '../command.ts';
import { advise } from '../doctor/advice.ts';
import { formatBytes } from '../format.ts';
import { type KernelReport, reportKernels } from '../kernel-report.ts';
import { readModelConfig } from '../load-flags.ts';
import { type EmbedderChoice, readEmbedderChoice } from '../memory/embedder-flag.ts';
import { openHub } from '../open-hub.ts';
import { listServers } from '../servers/server-registry.ts';
import { SERVE_DEFAULTS } from './serve-flags.ts';
import { splitRows } from '../summary.ts';

/** Instruction sets that matter for kernel speed, by their Linux names. */
const RELEVANT_FEATURES =
  /^(?:sse4_2|avx|avx2|fma|f16c|avx512f|avx512_vnni|avx_vnni|amx_int8|amx_bf16|asimd|asimddp|i8mm|sve2?)$/;

const AMX_STATES: Readonly<Record<AmxState, string>> = {
  permitted: 'available',
  refused: 'in the processor, but the system denies it to this process',
  absent: 'not in this processor',
  unknown: 'unknown',
};

const LARGE_PAGES = {
  always: 'on, used for weights',
  madvise: 'on request, used for weights',
  never: 'off: weights use small pages (/sys/kernel/mm/transparent_hugepage/enabled)',
} as const;

/** Shows hardware, kernels, models and settings, with problems and advice. */
export const run: CommandRunner = async ({ io, output, version, config: settings }) => {
  const system = readSystemInfo();
  const modelConfig = readModelConfig({}, io.environment);
  const config = resolveModelConfig(modelConfig, { numCpus: system.numCpus });
  const kernels = await reportKernels(config.kernels, config.numThreads);
  const features = readNativeFeatures();
  const native = { features, amx: findAmxState(system.cpuFeatures, features), largePages: readLargePages() };
  const hub = openHub();
  const models = await hub.listModels();
  const freeBytes = await freeSpace(hub.cacheRoot);
  const defaultModel = await findDefault(hub, io.environment['RUVLLM_MODEL'] || null);
  const defaultMemory = defaultModel.path === null ? null : estimateMemory(defaultModel.path, modelConfig);
  const defaultModelBytes = defaultMemory?.totalBytes ?? null;
  const inspection = defaultModel.path === null ? null : inspectModel(defaultModel.path, modelConfig);
  const cache = { root: hub.cacheRoot, freeBytes, models };
  const memoryEmbedder = await describeEmbedder(hub, readEmbedderChoice({ values: {}, io }));
  const node = process.version;
  const images = listImages(repackFolder());
  const imagesBytes = images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const repackCache = { root: repackFolder(), numImages: images.length, sizeBytes: imagesBytes };
  const findings = advise({
    kernels,
    kernelChoice: config.kernels,
    amx: native.amx,
    largePages: native.largePages,
    numThreads: config.numThreads,
    numCpus: system.numCpus,
    availableMemoryBytes: system.availableMemoryBytes,
    cacheRoot: hub.cacheRoot,
    cacheFreeBytes: freeBytes,
    numModels: models.length,
    defaultModel,
    defaultModelBytes,
    defaultModelProblems: inspection?.problems ?? [],
    fittingQuant: inspection?.fitting?.name ?? null,
    configError: settings.error?.message ?? null,
    hasKeys: openKeyFolder(defaultKeyFolder())
      .list()
      .some(({ revokedMs }) => revokedMs === null),
    host: io.environment['RUVLLM_HOST'] || SERVE_DEFAULTS.host,
  });
  const servers = listServers().map(({ url }) => url);
  output.document({
    version,
    node,
    system,
    threads: config.numThreads,
    kernels,
    native,
    cache,
    repacked: repackCache,
    defaultModel,
    defaultModelBytes,
    ...(defaultMemory?.split === undefined ? {} : { defaultModelSplit: defaultMemory.split }),
    memoryEmbedder,
    config: { path: settings.file?.path ?? null, error: settings.error?.message ?? null },
    servers,
    findings,
  });

  const rows: [string, string][] = [
    ['ruvllm', `${version} on Node.js ${node}`],
    ['system', `${system.system} ${system.release}, ${system.architecture}`],
    ['cpu', `${system.cpuModel}, ${describeCpus(system)}`],
    ['features', system.cpuFeatures.filter((name) => RELEVANT_FEATURES.test(name)).join(' ') || 'unknown'],
    ['memory', describeMemory(system)],
    ['threads', String(config.numThreads)],
    ...kernels.map((report): [string, string] => ['kernels', describeKernels(report)]),
    ['amx', AMX_STATES[native.amx]],
    ['huge pages', native.largePages === null ? 'unknown' : LARGE_PAGES[native.largePages]],
    ['cache', `${hub.cacheRoot}, ${freeBytes === null ? 'unknown space' : formatBytes(freeBytes)} free`],
    ['packed weights', `${repackCache.root}, ${images.length} models, ${formatBytes(imagesBytes)}`],
    ['models', models.length === 0 ? 'none yet' : models.map(({ reference }) => reference).join(', ')],
    ['default', defaultModel.summary],
    ...(defaultModelBytes === null ? [] : [['requires', formatBytes(defaultModelBytes)] as [string, string]]),
    ...splitRows(defaultMemory),
    ['memory embedder', memoryEmbedder],
    ['architectures', [...architectures.keys()].join(', ')],
    ['settings', settings.file?.path ?? 'no file; ruvllm config path shows possible locations'],
    ['servers', servers.length === 0 ? 'none running' : `${servers.join(', ')}; ruvllm ps shows details`],
  ];
  output.details(rows);
  for (const { level, what, why, next } of findings) {
    output.lines('');
    output.details([
      [level, what],
      ['why', why],
      ['next', next],
    ]);
  }
  if (findings.length === 0) output.lines('\nno problems found');
};

function describeCpus({ numCpus, cpuQuota }: SystemInfo): string {
  return `${numCpus} usable${cpuQuota === null ? '' : ` (limited to ${cpuQuota})`}`;
}

function describeMemory({ totalMemoryBytes, availableMemoryBytes, memoryLimitBytes }: SystemInfo): string {
  const limit = memoryLimitBytes === null ? '' : `, container limit ${formatBytes(memoryLimitBytes)}`;
  return `${formatBytes(availableMemoryBytes)} available of ${formatBytes(totalMemoryBytes)}${limit}`;
}

function describeKernels({ name, build, isUsable, reason, isChosen }: KernelReport): string {
  const state = isChosen ? 'used' : isUsable ? 'usable' : 'not usable';
  return `${name}${build === null ? '' : ` ${build}`}: ${state}; ${reason}`;
}

/** Free bytes of the folder, or of its nearest existing parent. */
async function freeSpace(folder: string): Promise<number | null> {
  for (let path = nodeHubFiles.absolutePath(folder); ; path = nodeHubFiles.join(path, '..')) {
    if ((await nodeHubFiles.stat(path)) !== null) return await nodeHubFiles.freeBytes(path);
    if (nodeHubFiles.join(path, '..') === path) return null;
  }
}

async function describeEmbedder(hub: Hub, { embedder, reference }: EmbedderChoice): Promise<string> {
  if (embedder !== 'encoder') return reference ?? embedder;
  const path = await hub.resolveModelPath(DEFAULT_ENCODER.reference, { download: false }).catch(() => null);
  const state = path === null ? 'not in the cache; the memory downloads it' : 'in the cache';
  return `sentence encoder ${DEFAULT_ENCODER.reference} (${state})`;
}

/** The default model of `ruvllm chat`, without downloading it. */
async function findDefault(hub: Hub, configured: string | null) {
  try {
    const isUsable = ({ architecture }: { architecture: string }): boolean => isDecoder(architecture);
    const { reference, path, choice } = await hub.resolveDefaultModel({ configured, download: false, isUsable });
    const reason = choice === 'configured' ? 'configured' : 'in the cache';
    return { reference, path, choice, summary: `${reference} (${reason})` };
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    if (configured !== null) {
      return { reference: configured, path: null, choice: 'configured' as const, summary: error.message };
    }
    const { reference } = DEFAULT_MODELS[0]!;
    return {
      reference,
      path: null,
      choice: 'hub' as const,
      summary: `${reference} (not in the cache; chat downloads it)`,
    };
  }
}
