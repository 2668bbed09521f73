// As much of Apple's Foundation as src/device/metal names, declared after its documentation, for a syntax check on
// other systems.
#pragma once

#include <objc_stub.h>

@interface NSString : NSObject
+ (instancetype)stringWithUTF8String:(const char*)text;
@property(readonly) const char* UTF8String;
@end

@interface NSError : NSObject
@property(readonly, copy) NSString* localizedDescription;
@end
