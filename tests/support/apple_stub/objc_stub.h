// The root of Objective-C's classes, for a syntax check where there is no framework of Apple's.
#pragma once

typedef unsigned long NSUInteger;
typedef signed char BOOL;
#define NO ((BOOL)0)
#define YES ((BOOL)1)
#define nil nullptr

__attribute__((objc_root_class))
@interface NSObject
+ (instancetype)alloc;
- (instancetype)init;
@end

@protocol NSObject
@end
