/** The two packs of a split model. */
export type Side = 'gpu' | 'cpu';

export const SIDES: readonly Side[] = ['gpu', 'cpu'];

export const otherSide = (side: Side): Side => (side === 'gpu' ? 'cpu' : 'gpu');
