/** Kernels of this runtime; `auto`: the fastest that runs here. */
export const BUILT_IN_KERNELS = ['auto', 'native', 'webgpu', 'wasm', 'reference'] as const;
export type BuiltInKernels = (typeof BUILT_IN_KERNELS)[number];

/** Which kernels to use; `pack:NAME` is an allowed pack from outside. */
export type KernelChoice = BuiltInKernels | `pack:${string}`;

const PACK = /^pack:([a-z0-9][a-z0-9-]{0,63})$/;
export const KERNEL_CHOICE = new RegExp(`^(?:${BUILT_IN_KERNELS.join('|')})$|${PACK.source}`);
/** For messages. */
export const KERNEL_CHOICES = `one of ${BUILT_IN_KERNELS.join(', ')}, or pack:NAME`;

/** The name of a pack from outside; null: a built-in choice. */
export const packNameOf = (choice: string): string | null => PACK.exec(choice)?.[1] ?? null;

export const isKernelChoice = (value: unknown): value is KernelChoice =>
  typeof value === 'string' && KERNEL_CHOICE.test(value);
