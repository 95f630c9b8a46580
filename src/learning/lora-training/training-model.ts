import { ADAPTER_TARGETS, type AdapterTarget } from '../../adapters/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { integerOption, numberOption, optional, resolveOptions } from '../../core/options.ts';
import type { GgufFile } from '../../gguf/index.ts';
import { alignArena, type KernelPack, type KernelPackFactory, MAX_RANK, PAGE_TOKENS } from '../../kernels/contract.ts';
import { readEpsilon } from '../../models/metadata-keys.ts';
import { readRope, writeCosSin } from '../../models/rope.ts';
import { readShape } from '../../models/shape.ts';
import { createBillingSink, createPackSink } from '../../models/weight-sinks.ts';
import { passBackward } from './backward.ts';
import { planReach } from './backward-reach.ts';
import { checkExample } from './check-example.ts';
import { createEmbeddingRows } from './embedding-rows.ts';
import { recordForward } from './forward.ts';
import { createFrozenStates } from './frozen-states.ts';
import { passHead } from './head-pass.ts';
import { checkLength, type LayoutMatrix, planLayout } from './parameter-layout.ts';
import { findTrainable } from './trainable-architectures.ts';
import { allocateTraining, type BufferPlan } from './training-buffers.ts';
import type { TrainingStep } from './training-step.ts';
import { readTrainingWeights } from './training-weights.ts';
import type { ExampleLoss, GradientOptions, TrainingExample, TrainingModel } from './types.ts';

export interface TrainingModelOptions {
  /** Matrices to adapt; default: all but the LM head. */
  readonly targets?: readonly AdapterTarget[];
  /** Number of last layers to adapt; default 2, or all if there are fewer. */
  readonly numLayers?: number | null;
  /** Default 8. */
  readonly rank?: number;
  /** The addition is multiplied by alpha / rank; default twice the rank. */
  readonly alpha?: number | null;
  /** Longest example; default 256. */
  readonly maxTokens?: number;
  /** Context length in serving, which some rotations depend on; default: that of the model. */
  readonly maxContextTokens?: number | null;
  /** Default 1. */
  readonly numThreads?: number;
  /** Limit of the arena; default: what the pack can address. */
  readonly memoryLimitBytes?: number | null;
}

const MAX_TRAINING_TOKENS = 2 ** 15;
const ALL_LAYER_TARGETS = ADAPTER_TARGETS.filter((target) => target !== 'output');

function targetsOption(value: unknown, name: string): readonly AdapterTarget[] {
  if (value === undefined) return ALL_LAYER_TARGETS;
  const known: readonly unknown[] = ADAPTER_TARGETS;
  if (Array.isArray(value) && value.length > 0 && value.every((target) => known.includes(target))) {
    return value as readonly AdapterTarget[];
  }
  throw new RuvLLMError('invalid_option', `option "${name}" must be some of ${ADAPTER_TARGETS.join(', ')}`, {
    data: { option: name },
  });
}

/** Loads a model for training into its own arena; throws `out_of_memory` before allocating. */
export async function createTrainingModel(
  gguf: GgufFile,
  factory: KernelPackFactory,
  given: TrainingModelOptions = {},
): Promise<TrainingModel> {
  const options = resolveOptions<Required<TrainingModelOptions>>('createTrainingModel', given, {
    targets: targetsOption,
    numLayers: optional(integerOption(1, 1, 1024)),
    rank: integerOption(8, 1, MAX_RANK),
    alpha: optional(numberOption(1, 1e-6, 1e6)),
    maxTokens: integerOption(256, 2, MAX_TRAINING_TOKENS),
    maxContextTokens: optional(integerOption(1, 1, 2 ** 27)),
    numThreads: integerOption(1, 1, 1024),
    memoryLimitBytes: optional(integerOption(0, 0, Number.MAX_SAFE_INTEGER)),
  });
  const traits = findTrainable(gguf.metadata.string('general.architecture'));
  const shape = readShape(gguf);
  if (shape.experts !== undefined) {
    throw new RuvLLMError(
      'unsupported',
      `adapters of a mixture of ${shape.experts.numExperts} experts cannot be trained`,
      { data: { architecture: shape.architecture, numExperts: shape.experts.numExperts } },
    );
  }
  const maxTokens = Math.min(options.maxTokens, shape.contextLength);
  const file = { gguf, shape, maxContextTokens: options.maxContextTokens ?? shape.contextLength };
  const numLayers = Math.min(options.numLayers ?? 2, shape.numLayers);
  const { rank, targets } = options;
  const layout = planLayout(shape, { targets, numLayers, rank, alpha: options.alpha ?? 2 * rank });
  const reach = planReach(shape, layout);
  const rope = readRope(file, traits.pairing);
  const fixed = { rope, epsilon: readEpsilon(file), window: traits.window(file) };
  const bill = createBillingSink(factory);
  readTrainingWeights(gguf, shape, traits.hasHeadNorms, reach, bill);
  const { arenaBytes: weightBytes, maxCols } = bill.bill();
  const plan: BufferPlan = {
    shape,
    layout,
    maxTokens,
    rotaryDim: rope.rotaryDim,
    hasHeadNorms: traits.hasHeadNorms,
    firstLayer: reach.firstLayer,
  };
  let activationBytes = 0;
  allocateTraining(plan, (sizeBytes) => {
    activationBytes += alignArena(sizeBytes);
    return 0;
  });
  const limitBytes = Math.min(factory.maxArenaBytes, options.memoryLimitBytes ?? Infinity);
  const arenaBytes = weightBytes + activationBytes;
  if (arenaBytes > limitBytes) {
    throw new RuvLLMError(
      'out_of_memory',
      `training needs ${arenaBytes} bytes (weights ${weightBytes}, activations of ${maxTokens} tokens ` +
        `${activationBytes}), the limit is ${limitBytes}`,
      { data: { neededBytes: arenaBytes, limitBytes, weightBytes, activationBytes } },
    );
  }
  const pack = await factory.create({ arenaBytes, numThreads: options.numThreads, maxTokens, maxCols });
  try {
    const sink = createPackSink(pack, () => {});
    const weights = readTrainingWeights(gguf, shape, traits.hasHeadNorms, reach, sink);
    const buffers = allocateTraining(plan, (sizeBytes, what) => pack.arena.allocate(sizeBytes, what));
    const memory = { weightBytes, activationBytes };
    const parts = { ...fixed, pack, shape, layout, weights, buffers };
    return bindModel(parts, { gguf, maxTokens, firstLayer: reach.firstLayer, memory });
  } catch (error) {
    await pack.dispose();
    throw error;
  }
}

function bindModel(
  parts: Omit<TrainingStep, 'numTokens' | 'isAdapted' | 'adapted'>,
  rest: Pick<TrainingModel, 'memory' | 'maxTokens'> & { readonly gguf: GgufFile; readonly firstLayer: number },
): TrainingModel {
  const { pack, shape, layout, buffers, rope } = parts;
  const { maxTokens, memory, firstLayer } = rest;
  const embed = createEmbeddingRows(rest.gguf, shape);
  const matrices = new Map(layout.matrices.map((matrix) => [`${matrix.target} ${matrix.layer}`, matrix]));
  const adapted = (target: LayoutMatrix['target'], layer: number): LayoutMatrix | undefined =>
    matrices.get(`${target} ${layer}`);

  const hasFrozenLayers = firstLayer > 0 && firstLayer < shape.numLayers;
  const frozenStates = createFrozenStates();
  let isBusy = false;
  /** Examples share buffers: two at once would overwrite each other. */
  async function alone<T>(work: () => Promise<T>): Promise<T> {
    if (isBusy) throw new RuvLLMError('conflict', 'the training model is at work on another example');
    isBusy = true;
    try {
      return await work();
    } finally {
      isBusy = false;
    }
  }

  async function pass(
    parameters: Float32Array | null,
    example: TrainingExample,
    gradient: Float32Array | null,
    { sampleLabels = null, objective = null }: GradientOptions = {},
  ): Promise<ExampleLoss> {
    const { tokenIds, numPromptTokens, weight = 1 } = example;
    checkExample(example, { maxTokens, vocabSize: shape.vocabSize });
    if (parameters !== null) checkLength('parameters', layout, parameters);
    const step = { ...parts, numTokens: tokenIds.length, isAdapted: parameters !== null, adapted };
    if (parameters !== null) pack.arena.f32(buffers.parameters, parameters.length).set(parameters);
    writeInputs(pack, step);
    const inputOf = (layer: number): Float32Array =>
      pack.arena.f32(buffers.layers[layer]!.input, tokenIds.length * shape.embeddingDim);
    const cached = hasFrozenLayers ? frozenStates.find(tokenIds) : null;
    if (cached === null) embed(tokenIds, inputOf(0));
    else inputOf(firstLayer).set(cached);
    recordForward(step, cached === null ? 0 : firstLayer);
    const labels = Array.from(tokenIds).slice(numPromptTokens);
    const numTokens = labels.length;
    const factor = sampleLabels === null ? Math.abs(weight) / numTokens : Math.abs(weight) / Math.sqrt(numTokens);
    const answer = {
      firstRow: numPromptTokens - 1,
      labels,
      isRejected: weight < 0,
      factor: gradient === null ? null : factor,
      random: sampleLabels,
      objective,
    };
    const total = await passHead(step, answer, gradient);
    // The first layer with gradients keeps its input until the next example.
    if (hasFrozenLayers && cached === null) frozenStates.keep(tokenIds, inputOf(firstLayer));
    const loss = objective === null ? total / numTokens : total;
    if (!Number.isFinite(loss)) throw new RuvLLMError('bad_gradient', `the loss of an example is ${loss}`);
    if (gradient !== null) await passBackward(step, firstLayer, answer.firstRow, gradient);
    return { loss, numTokens };
  }

  function writeInputs({ arena }: KernelPack, { numTokens }: TrainingStep): void {
    const positions = Int32Array.from({ length: numTokens }, (_, i) => i);
    writeCosSin(rope, positions, arena.f32(buffers.cosSin, numTokens * rope.rotaryDim));
    arena.i32(buffers.slots, numTokens).set(positions);
    arena.i32(buffers.sequence, 4).set([0, numTokens, numTokens, 0]);
    const numPages = Math.ceil(numTokens / PAGE_TOKENS);
    arena.i32(buffers.pageTable, numPages).set(positions.subarray(0, numPages));
  }

  return {
    shape,
    layout,
    maxTokens,
    memory,
    check: (example) => checkExample(example, { maxTokens, vocabSize: shape.vocabSize }),
    loss: (parameters, example, options) => alone(() => pass(parameters, example, null, options)),
    async addGradient(parameters, example, gradient, options) {
      checkLength('a gradient', layout, gradient);
      const added = new Float32Array(layout.numParameters);
      const result = await alone(() => pass(parameters, example, added, options));
      checkFinite(added);
      for (let i = 0; i < added.length; i++) gradient[i]! += added[i]!;
      return result;
    },
    dispose: () => pack.dispose(),
  };
}

function checkFinite(gradient: Float32Array): void {
  const index = gradient.findIndex((value) => !Number.isFinite(value));
  if (index === -1) return;
  throw new RuvLLMError(
    'bad_gradient',
    `the gradient of parameter ${index} of ${gradient.length} is ${gradient[index]}`,
    {
      data: { index, numParameters: gradient.length },
    },
  );
}
