import type { Random } from '../../core/random.ts';
import type { DecoderShape } from '../../models/types.ts';
import type { ParameterLayout } from './parameter-layout.ts';

/** A text to learn from: what was asked, and an answer that was accepted, corrected or rejected. */
export interface TrainingExample {
  readonly tokenIds: ArrayLike<number>;
  /** The first tokens are only context and have no loss of their own; at least 1, less than all. */
  readonly numPromptTokens: number;
  /** From −1 to 1, default 1. Above 0 the answer gets likelier, below 0 less likely, by its magnitude. */
  readonly weight?: number;
}

export interface ExampleLoss {
  /** Mean over the tokens of the answer: −log p, or −log(1 − p) of an example with a weight below 0; without the weight. */
  readonly loss: number;
  /** Tokens of the answer. */
  readonly numTokens: number;
}

export interface GradientOptions {
  /**
   * Draws the labels from the model's own distribution instead of taking the answer's tokens: squares of such gradients
   * average to the Fisher information (those of the data's labels would only resemble it). The gradient is then
   * that of the summed loss over √numTokens, so that its square is the information of one token.
   */
  readonly sampleLabels?: Random | null;
}

/** A frozen decoder that can say how the loss of an example depends on low-rank additions to its matrices. */
export interface TrainingModel {
  readonly shape: DecoderShape;
  /** Which number of a parameter vector is what. */
  readonly layout: ParameterLayout;
  /** Longest example. */
  readonly maxTokens: number;
  readonly memory: { readonly weightBytes: number; readonly activationBytes: number };
  /** `parameters` null: the model as it is in its file. */
  loss(parameters: Float32Array | null, example: TrainingExample): Promise<ExampleLoss>;
  /** Adds |weight| times the gradient of the loss to `gradient`; neither is changed if a number is not finite. */
  addGradient(
    parameters: Float32Array,
    example: TrainingExample,
    gradient: Float32Array,
    options?: GradientOptions,
  ): Promise<ExampleLoss>;
  dispose(): Promise<void>;
}
