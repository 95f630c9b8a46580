import type { TrainedEmbeddings, TrainEmbeddingsOptions } from './train-embeddings.ts';

/** Trains a low-rank projection of a model's embeddings on pairs of texts. Loaded with the first call. */
export async function trainEmbeddings(options: TrainEmbeddingsOptions): Promise<TrainedEmbeddings> {
  const { trainEmbeddingProjection } = await import('./train-embeddings.ts');
  return trainEmbeddingProjection(options);
}
