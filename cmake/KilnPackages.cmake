# Debian packages, by `cpack -G DEB` in the build folder: kiln (the command line), kiln-daemon (with a unit of systemd)
# and libkiln-dev (the C++ client). What they depend on is read from the programs.
# The service writes outside of the prefix, so it is part of no other installation.

install(FILES deploy/systemd/kilnd.toml DESTINATION /etc/kiln COMPONENT service EXCLUDE_FROM_ALL)
install(FILES deploy/systemd/kilnd.service DESTINATION /lib/systemd/system COMPONENT service EXCLUDE_FROM_ALL)
install(FILES LICENSE NOTICE DESTINATION share/doc/kiln-client COMPONENT client)
# What the programs are linked with is in them, so its licences lie beside them.
foreach(component cli daemon)
  install(CODE "execute_process(COMMAND ${CMAKE_SOURCE_DIR}/deploy/licences.sh
    \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/kiln-${component} COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT ${component})
endforeach()

set(CPACK_PACKAGE_NAME kiln)
set(CPACK_PACKAGE_VENDOR "Kiln")
set(CPACK_PACKAGE_CONTACT "The Kiln authors <kiln@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL cli client daemon service)
set(CPACK_COMPONENT_DAEMON_GROUP daemon)
set(CPACK_COMPONENT_SERVICE_GROUP daemon)
set(CPACK_COMPONENT_CLI_GROUP cli)
set(CPACK_COMPONENT_CLIENT_GROUP client)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_CLI_PACKAGE_NAME kiln)
set(CPACK_DEBIAN_CLI_DESCRIPTION "command line of Kiln, which compiles and runs tensor kernels")
set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME kiln-daemon)
set(CPACK_DEBIAN_DAEMON_DESCRIPTION "daemon of Kiln, which compiles and runs tensor kernels")
set(CPACK_DEBIAN_DAEMON_PACKAGE_RECOMMENDS kiln)
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA
  "${CMAKE_SOURCE_DIR}/deploy/debian/postinst;${CMAKE_SOURCE_DIR}/deploy/debian/prerm;${CMAKE_SOURCE_DIR}/deploy/debian/conffiles")
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME libkiln-dev)
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "C++ client of Kiln, with headers and CMake's find_package(kiln)")
include(CPack)
