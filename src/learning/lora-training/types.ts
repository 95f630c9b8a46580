import type { Random } from '../../core/random.ts';
import type { DecoderShape } from '../../models/types.ts';
import type { TokenSample } from '../micro-lora/types.ts';
import type { ParameterLayout } from './parameter-layout.ts';
import type { TokenObjective } from './token-objective.ts';

/** A prompt with an accepted, corrected or rejected answer. */
export interface TrainingExample {
  readonly tokenIds: ArrayLike<number>;
  /** Leading tokens without a loss; at least 1, fewer than all. */
  readonly numPromptTokens: number;
  /** From −1 to 1, default 1. Above 0 the answer becomes likelier, below 0 less likely. */
  readonly weight?: number;
  /** The answer's tokens as the LM head of the served model sees them; only for training of the LM head alone. */
  readonly samples?: readonly TokenSample[];
}

export interface ExampleLoss {
  /** Unweighted mean over the answer's tokens: −log p, or −log(1 − p) if the weight is below 0. */
  readonly loss: number;
  /** Tokens of the answer. */
  readonly numTokens: number;
}

export interface GradientOptions {
  /**
   * Samples the labels from the model instead of taking the answer's tokens: the mean of such squared gradients is the Fisher
   * information (with the data's labels only an approximation). The gradient is then that of the summed loss over √numTokens,
   * so that its square is the information of one token.
   */
  readonly sampleLabels?: Random | null;
  /** Replaces −log p of the labels and the weight of the example; the loss is then the objective's sum over all rows. */
  readonly objective?: TokenObjective | null;
}

/** Anything whose loss has gradients for a parameter vector; `Item` is a unit of training data. */
export interface Trainable<Item> {
  readonly layout: ParameterLayout;
  /** Throws if the item is out of range, before anything is computed. */
  check(item: Item): void;
  /** Called before the items of a step, for objectives that compare items with each other. */
  prepareBatch?(parameters: Float32Array, items: readonly Item[]): Promise<void>;
  /** Adds the gradient of the loss to `gradient`; it is not changed if a number is not finite. */
  addGradient(parameters: Float32Array, item: Item, gradient: Float32Array): Promise<ExampleLoss>;
}

/** A frozen decoder with gradients of the loss for low-rank additions to its matrices. */
export interface TrainingModel extends Trainable<TrainingExample> {
  readonly shape: DecoderShape;
  /** Longest example. */
  readonly maxTokens: number;
  readonly memory: { readonly weightBytes: number; readonly activationBytes: number };
  /** `parameters` null: the model as in its file. */
  loss(
    parameters: Float32Array | null,
    example: TrainingExample,
    options?: Pick<GradientOptions, 'objective'>,
  ): Promise<ExampleLoss>;
  /** Adds |weight| times the gradient of the loss to `gradient`; neither is changed if a number is not finite. */
  addGradient(
    parameters: Float32Array,
    example: TrainingExample,
    gradient: Float32Array,
    options?: GradientOptions,
  ): Promise<ExampleLoss>;
  dispose(): Promise<void>;
}
