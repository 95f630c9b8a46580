// Compares our tokens and logits with llama.cpp's (node-llama-cpp), model by model. Fails if logits differ by more than
// the limits below, or if a greedy choice differs for another reason. Models: the files on the command line, otherwise
// small real ones if present, and random ones of every architecture and format.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { createMemorySource } from '../src/core/byte-source.ts';
import { createRandom } from '../src/core/random.ts';
import type { TensorTypeName } from '../src/core/tensor-type.ts';
import type { KernelPackFactory } from '../src/kernels/contract.ts';
import { randomAdapter } from '../test/support/random-adapter.ts';
import { graniteExperts } from '../test/support/random-experts.ts';
import { buildRandomModel, type RandomArchitecture, type RandomModelOptions } from '../test/support/random-model.ts';
import { importBuilt } from './support/dist.ts';
import { readAsFloats } from './support/float-file.ts';
import { type LlamaCpp, startLlamaCpp } from './support/llama-cpp.ts';
import { type Trace, traceLlamaCpp, traceOurs } from './support/next-token-logits.ts';
import { printTable } from './support/report.ts';
import { combine, compareTraces, type Comparison, median, positionErrors } from './support/trace-difference.ts';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kernels: { type: 'string', default: 'wasm' },
    tokens: { type: 'string', default: '120' },
    threads: { type: 'string', default: '2' },
    quick: { type: 'boolean', default: false },
    /** Only random models of these types, separated by commas: of Llama, or of the given architectures. */
    types: { type: 'string' },
    /** Only random models of this architecture, mixtral or granitehybrid-moe; may be repeated. */
    architecture: { type: 'string', multiple: true, default: [] },
  },
});

/**
 * Of `Comparison.error`. Beyond the limit, quantized weights pass only if ours is not further from the same weights as F32
 * than llama.cpp's, at the median position: another choice of one expert at one position would decide a mean.
 */
const MAX_ERROR = { float: 1e-4, quantized: 1e-2 };
/**
 * A greedy choice should differ only where llama.cpp hardly prefers one of the two. With quantized weights one
 * activation that rounds differently changes logits by more than this (also between llama.cpp's own CPU builds), so
 * there a wider gap is reported but not counted as a failure.
 */
const MAX_TIE_GAP = 1e-3;
const ENOUGH_TOKENS = 100;
/**
 * Seeds of a random quantized model, judged together. With one seed chance decides: one activation near a rounding
 * border changes the error of a gemma3 Q8_0 between 0 and 1.3e-2, with every kernel pack.
 */
const QUANTIZED_SEEDS = [7, 8, 9, 10, 11, 12];
const NUM_PROMPT = 40;
const PROMPT = 'Once upon a time there was a little girl named Lily. She had a big red ball';
/** llama.cpp rounds contexts up to this. */
const CONTEXT = 256;

const ALL_TYPES: TensorTypeName[] = [
  ...(['F32', 'F16', 'BF16', 'Q8_0', 'Q4_0', 'Q4_1', 'Q5_0', 'Q5_1'] as const),
  ...(['Q2_K', 'Q3_K', 'Q4_K', 'Q5_K', 'Q6_K', 'IQ2_XXS', 'IQ4_NL', 'IQ4_XS'] as const),
  ...(['IQ1_S', 'IQ1_M', 'IQ2_XS', 'IQ2_S', 'IQ3_XXS', 'IQ3_S', 'TQ1_0', 'TQ2_0'] as const),
  ...(['Q1_0', 'Q2_0', 'MXFP4', 'NVFP4'] as const), // not Q8_K: llama.cpp cannot multiply with it
];
interface RandomSubject {
  readonly architecture: RandomArchitecture;
  readonly types: readonly TensorTypeName[];
  /** Default: the architecture. */
  readonly title?: string;
  readonly shape?: RandomModelOptions['shape'];
}
const MIXTRAL: RandomModelOptions['shape'] = { experts: { numExperts: 4, numUsed: 2, feedForwardDim: 160 } };
const WIDE_MIXTRAL: RandomModelOptions['shape'] = { experts: { numExperts: 4, numUsed: 2, feedForwardDim: 512 } };
/** Queries without a rank, keys and values of all heads in one matrix, softmax of all experts: as in DeepSeek V2 Lite. */
const lite = (dim: number) => ({
  numLayers: 26, // llama.cpp knows such files by their number of layers.
  isLite: true,
  isStacked: true,
  experts: {
    numExperts: 6,
    numUsed: 2,
    feedForwardDim: dim,
    sharedDim: dim,
    numDenseLayers: 1,
    keys: { expert_shared_count: 1 },
  },
});
const FEW_TYPES: readonly TensorTypeName[] = options.quick
  ? ['F32']
  : ((options.types?.split(',') as TensorTypeName[] | undefined) ?? ['F32', 'Q8_0', 'Q4_0', 'Q4_K']);

const RANDOM_MODELS: readonly RandomSubject[] =
  options.types !== undefined && options.architecture.length === 0
    ? [{ architecture: 'llama', types: options.types.split(',') as TensorTypeName[] }]
    : [
        { architecture: 'llama', types: options.quick ? ['F32', 'Q4_0', 'Q4_K', 'Q6_K', 'IQ2_XXS'] : ALL_TYPES },
        ...(
          [
            ...([
              'qwen2',
              'qwen3',
              'phi2',
              'phi3',
              'gemma',
              'gemma2',
              'gemma3',
              'gemma3n',
              'gemma4',
              'smollm3',
              'olmo2',
            ] as const),
            ...([
              'granite',
              'glm4',
              'starcoder2',
              'command-r',
              'cohere2',
              'lfm2',
              'granitehybrid',
              'falcon-h1',
            ] as const),
            ...(['qwen3moe', 'qwen2moe', 'gpt-oss', 'granitemoe', 'lfm2moe', 'deepseek2'] as const),
            ...(['qwen3next', 'qwen35', 'qwen35moe'] as const),
          ] as const
        ).map((architecture) => ({ architecture, types: FEW_TYPES })),
        ...FEW_TYPES.flatMap((type) => {
          const isWide = type === 'Q4_K';
          return [
            { architecture: 'llama' as const, title: 'mixtral', types: [type], shape: isWide ? WIDE_MIXTRAL : MIXTRAL },
            {
              architecture: 'granitehybrid' as const,
              title: 'granitehybrid-moe',
              types: [type],
              shape: { experts: graniteExperts(8, isWide ? 256 : 64, isWide ? 512 : 96) },
            },
            {
              architecture: 'qwen3next' as const,
              title: 'qwen3next-stacked',
              types: [type],
              shape: { isStacked: true },
            },
            {
              architecture: 'gemma4' as const,
              title: 'gemma4-moe',
              types: [type],
              shape: { numLayers: 6, experts: { numExperts: 8, numUsed: 3, feedForwardDim: isWide ? 256 : 64 } },
            },
            {
              architecture: 'deepseek2' as const,
              title: 'deepseek2-lite',
              types: [type],
              shape: lite(isWide ? 256 : 64),
            },
          ];
        }),
      ];
const isChosen = ({ architecture, title = architecture }: RandomSubject): boolean =>
  options.architecture.length === 0 || options.architecture.includes(title);

/** llama.cpp aborts on AMX machines if the matrices of latent heads are quantized (no backend can multiply a permuted input). */
const typeIn = (name: string, type: TensorTypeName): TensorTypeName =>
  /attn_[kv]_b\.weight$/.test(name) ? 'F32' : type;

interface Subject {
  name: string;
  path: string;
  /** The same model with other seeds. */
  morePaths: readonly string[];
  isFloat: boolean;
  isRandom: boolean;
  /** A LoRA used by both sides; null: none. */
  adapterPath: string | null;
}

/**
 * The same model with its weights as floats. With 8-bit activations an adapter moves some across a rounding border on
 * one side only, and that noise would hide a wrong adapter.
 */
async function toFloats(subject: Subject): Promise<Subject> {
  if (subject.isFloat) return subject;
  const path = `.cache/compare/${subject.name}-as-f32.gguf`;
  writeFileSync(path, await readAsFloats(subject.path));
  return { ...subject, name: `${subject.name} as F32`, path, isFloat: true };
}

/** A LoRA file of random factors, readable by both sides, for every matrix with its own name in the file. */
async function writeRandomAdapter(original: Subject): Promise<Subject | null> {
  const subject = await toFloats(original);
  const { openGguf, writeGguf, createMemorySink } =
    await importBuilt<typeof import('../src/gguf/index.ts')>('gguf/index');
  const { readShape } = await importBuilt<typeof import('../src/models/shape.ts')>('models/shape');
  const { describeAdapterFile, ADAPTER_TARGETS, targetShape } =
    await importBuilt<typeof import('../src/adapters/index.ts')>('adapters/index');
  const gguf = openGguf(createMemorySource(readFileSync(subject.path)));
  // llama.cpp finds matrices by name: not stacked ones, or an output that is the embedding.
  const shape = readShape(gguf);
  const targets = ADAPTER_TARGETS.filter((target) => {
    const tensor = gguf.tensors.get(target === 'output' ? 'output.weight' : `blk.0.${target}.weight`);
    if (shape.experts !== undefined && target.startsWith('ffn_')) return false;
    if (shape.latent !== undefined && target.startsWith('attn_')) return false;
    if (target === 'attn_v' && shape.layerSizes?.some(({ hasNoValues }) => hasNoValues)) return false;
    return tensor !== undefined && tensor.dims[1] === targetShape(target, shape, 0).numRows;
  });
  if (!targets.includes('attn_q')) return null;
  const adapter = await randomAdapter(shape, { seed: 11, rank: 8, scale: 2, targets, strength: 0.1 });
  const sink = createMemorySink();
  writeGguf(describeAdapterFile(adapter, { name: 'random' }), sink);
  const adapterPath = `.cache/compare/${subject.name.replaceAll(' ', '-')}.lora.gguf`;
  writeFileSync(adapterPath, sink.toBytes());
  return { ...subject, name: `${subject.name} + LoRA`, adapterPath };
}

const ALONE = { adapterPath: null, morePaths: [] };

/** Each model, and float or real models also with a LoRA. */
async function* allSubjects(): AsyncGenerator<Subject> {
  mkdirSync('.cache/compare', { recursive: true });
  for (const subject of subjects()) {
    yield subject;
    const adapted = subject.isFloat || !subject.isRandom ? await writeRandomAdapter(subject) : null;
    if (adapted !== null) yield adapted;
  }
}

function* subjects(): Generator<Subject> {
  const near = ['stories260K-f32.gguf', 'stories15M-q8_0.gguf'].map((file) => join('../shared/models', file));
  const isAll = positionals.length === 0 && options.types === undefined && options.architecture.length === 0;
  const files = isAll ? near.filter((path) => existsSync(path)) : positionals;
  for (const path of files) yield { ...ALONE, name: basename(path), path, isFloat: /f32/i.test(path), isRandom: false };
  if (positionals.length > 0) return;
  if (isAll && files.length < near.length) console.log('the small real models are missing: comparing only random ones');
  mkdirSync('.cache/compare', { recursive: true });
  for (const { architecture, types, title = architecture, shape = {} } of RANDOM_MODELS.filter(isChosen)) {
    for (const type of types) {
      const isFloat = type === 'F32';
      const seeds = isFloat ? QUANTIZED_SEEDS.slice(0, 1) : QUANTIZED_SEEDS;
      const [path, ...morePaths] = seeds.map((seed) => {
        const file = `.cache/compare/${title}-${type}-${seed}.gguf`;
        writeFileSync(
          file,
          buildRandomModel({ architecture, type, seed, shape, typeOf: (name) => typeIn(name, type) }),
        );
        return file;
      });
      yield { ...ALONE, name: `random ${title} ${type}`, path: path!, morePaths, isFloat, isRandom: true };
    }
  }
}

/** English for real models; random ids for random ones, whose vocabularies have no words. */
async function promptFor({ path, isRandom }: Subject): Promise<number[]> {
  const random = createRandom(1);
  if (isRandom) return [1, ...Array.from({ length: NUM_PROMPT - 1 }, () => 3 + Math.floor(random.next() * 300))];
  const { openGguf } = await importBuilt<typeof import('../src/gguf/index.ts')>('gguf/index');
  const { createTokenizer } = await importBuilt<typeof import('../src/tokenizers/index.ts')>('tokenizers/index');
  const { metadata } = openGguf(createMemorySource(readFileSync(path)));
  return createTokenizer(metadata).encode(PROMPT, { addSpecial: true });
}

/** Medians of the relative errors of all positions against the same weights as F32. */
interface FloatDistance {
  readonly ours: number;
  readonly theirs: number;
}

interface Result extends Comparison {
  /** Only beyond the limit, with quantized weights. */
  floatDistance: FloatDistance | null;
}

interface TracedFile {
  readonly subject: Subject;
  readonly prompt: readonly number[];
  readonly ours: Trace;
  readonly theirs: Trace;
}

async function compare(llama: LlamaCpp, factory: KernelPackFactory, subject: Subject): Promise<Result> {
  const files: TracedFile[] = [];
  for (const path of [subject.path, ...subject.morePaths])
    files.push(await trace(llama, factory, { ...subject, path }));
  const comparison = combine(files.map(({ ours, theirs }) => compareTraces(ours, theirs)));
  const isBeyond = !subject.isFloat && comparison.error > MAX_ERROR.quantized;
  return { ...comparison, floatDistance: isBeyond ? await measureFloatDistance(llama, files) : null };
}

async function trace(llama: LlamaCpp, factory: KernelPackFactory, subject: Subject): Promise<TracedFile> {
  const prompt = await promptFor(subject);
  const theirs = await traceLlamaCpp(llama, { ...subject, prompt, contextSize: CONTEXT }, Number(options.tokens));
  const traced = { bytes: readFileSync(subject.path), prompt, contextSize: CONTEXT, adapterPath: subject.adapterPath };
  const ours = await traceOurs(factory, traced, theirs.greedy, Number(options.threads));
  return { subject, prompt, ours, theirs };
}

/** F32 is computed by llama.cpp: with ours, a wrong forward pass would move the truth to its own result. */
async function measureFloatDistance(llama: LlamaCpp, files: readonly TracedFile[]): Promise<FloatDistance> {
  const errors = { ours: [] as number[], theirs: [] as number[] };
  for (const file of files) {
    const { subject, prompt, theirs } = file;
    const path = '.cache/compare/truth-as-f32.gguf';
    writeFileSync(path, await readAsFloats(subject.path));
    const traced = { ...subject, path, prompt, contextSize: CONTEXT };
    const truth = await traceLlamaCpp(llama, traced, theirs.greedy.length, theirs.greedy);
    for (const side of ['ours', 'theirs'] as const) errors[side].push(...positionErrors(file[side], truth));
  }
  return { ours: median(errors.ours), theirs: median(errors.theirs) };
}

async function packFactory(): Promise<KernelPackFactory> {
  if (options.kernels === 'reference') {
    const module = await importBuilt<typeof import('../src/kernels/reference/reference-pack.ts')>(
      'kernels/reference/reference-pack',
    );
    return module.createReferencePackFactory();
  }
  if (options.kernels === 'native') {
    const node = await importBuilt<typeof import('../src/platform/node/kernels/native-addon.ts')>(
      'platform/node/kernels/native-addon',
    );
    const native =
      await importBuilt<typeof import('../src/kernels/native/native-pack.ts')>('kernels/native/native-pack');
    const [best] = node.loadNativeBuilds();
    if (best === undefined) throw new Error('native kernels are not built: npm run build:native');
    return native.createNativePackFactory(best);
  }
  const pack = await importBuilt<typeof import('../src/kernels/wasm/wasm-pack.ts')>('kernels/wasm/wasm-pack');
  const node = await importBuilt<typeof import('../src/platform/node/kernels/wasm-platform.ts')>(
    'platform/node/kernels/wasm-platform',
  );
  return pack.createWasmPackFactory(node.createNodeWasmPlatform());
}

const llama = await startLlamaCpp(Number(options.threads));
const factory = await packFactory();
const rows = [
  [
    'model',
    'relative error of logits',
    'limit',
    'worst position',
    'equal greedy tokens',
    'before the first difference',
    'gap at a difference',
    'ours to F32',
    'llama.cpp to F32',
    '',
  ],
];
const results: (Result & { model: string; isOk: boolean })[] = [];
for await (const subject of allSubjects()) {
  const result = await compare(llama, factory, subject);
  const limit = subject.isFloat ? MAX_ERROR.float : MAX_ERROR.quantized;
  const isSameText = result.sameFromStart >= ENOUGH_TOKENS || (result.worstTieGap ?? 0) < MAX_TIE_GAP;
  const { floatDistance } = result;
  const isNotFurther = floatDistance !== null && floatDistance.ours <= floatDistance.theirs;
  const isOk = (result.error <= limit || isNotFurther) && (isSameText || !subject.isFloat);
  results.push({ model: subject.name, ...result, isOk });
  rows.push([
    subject.name,
    result.error.toExponential(1),
    limit.toExponential(0),
    result.worstRow.toExponential(1),
    `${result.sameTokens} of ${result.numTokens}`,
    String(result.sameFromStart),
    result.worstTieGap?.toExponential(1) ?? '',
    floatDistance?.ours.toExponential(3) ?? '',
    floatDistance?.theirs.toExponential(3) ?? '',
    isOk ? (isNotFurther ? 'not further' : isSameText ? 'ok' : 'close call') : 'FAIL',
  ]);
  console.error(rows.at(-1)!.join('  '));
}
const numFailed = results.filter(({ isOk }) => !isOk).length;
printTable(rows);
console.log(JSON.stringify({ compare: 'llama.cpp', ...options, numFailed, results }));
// Otherwise node-llama-cpp keeps the process alive.
process.exit(numFailed === 0 ? 0 : 1);
