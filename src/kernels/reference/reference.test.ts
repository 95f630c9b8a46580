import { describeKernelPack } from '../pack.contract.ts';
import { createReferencePackFactory } from './reference-pack.ts';

describeKernelPack('reference', createReferencePackFactory);
