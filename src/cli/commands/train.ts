import { actionCommand } from '../actions.ts';
import { TRAIN_EMBEDDINGS } from './train-embeddings.ts';

/** Trains files that change a model: projections of embeddings. */
export const { flags, help, run } = actionCommand('train', { embeddings: TRAIN_EMBEDDINGS });
