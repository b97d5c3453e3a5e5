import { shared, fixed } from './exported';

//?
export function usesShared() { shared.go(); }
//? core.ts:A.go
export function usesFixed() { fixed.go(); }
